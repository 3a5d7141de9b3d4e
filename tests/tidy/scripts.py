#!/usr/bin/env python3
"""Reads every Python file with pyflakes and every shell script with shellcheck; whatever they find is an error.

    python3 tests/tidy/scripts.py [--root DIR]

Found by their names or first lines, so that a new one is read without being listed anywhere. A line that is right as
it stands says "# noqa", with its reason where that is not plain (pytest finds fixtures by imported names, say); for
the shell it is "# shellcheck disable=..." with its reason.
"""

import argparse
import ast
import pathlib
import re
import subprocess
import sys

from pyflakes import checker

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "bench", "helm", ".ci")
PYTHON = re.compile(rb"#!.*\bpython3?\b")
SHELL = re.compile(rb"#!.*\b(?:ba|da)?sh\b")
ORIGIN = re.compile(r"from line (\d+)")


def sources(root):
    """(Python files, shell scripts)."""
    python, shell = [], []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*")):
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        with open(path, "rb") as f:
            first = f.readline(200)
        if path.suffix == ".py" or PYTHON.match(first):
            python.append(path)
        elif path.suffix == ".sh" or SHELL.match(first):
            shell.append(path)
    return python, shell


def excused(line_numbers, lines):
    """pyflakes itself knows no excuse. One on an import counts for what is said of the name later."""
    return any("# noqa" in lines[number - 1] for number in line_numbers)


def check_python(path, root):
    name = path.relative_to(root)
    text = path.read_text()
    try:
        tree = ast.parse(text, filename=str(name))
    except SyntaxError as error:
        return [f"{name}:{error.lineno}: {error.msg}"]
    lines = text.split("\n")
    findings = []
    for message in sorted(checker.Checker(tree, filename=str(name)).messages, key=lambda each: each.lineno):
        said = message.message % message.message_args
        if not excused([message.lineno, *map(int, ORIGIN.findall(said))], lines):
            findings.append(f"{name}:{message.lineno}: {said}")
    return findings


def check_shell(paths, root):
    if not paths:
        return []
    done = subprocess.run(["shellcheck", "--format=gcc", *(str(path.relative_to(root)) for path in paths)], cwd=root,
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    findings = (done.stdout + done.stderr).splitlines()
    return findings or ([f"shellcheck ended with {done.returncode}"] if done.returncode else [])


def check(root):
    python, shell = sources(root)
    return [finding for path in python for finding in check_python(path, root)] + check_shell(shell, root)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=ROOT, type=pathlib.Path)
    findings = check(parser.parse_args().root.resolve())
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
