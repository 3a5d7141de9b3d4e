#!/usr/bin/env python3
"""Runs cppcheck over src, tests and bench; whatever it finds is an error.

    python3 tests/tidy/cppcheck.py [--build build-check] [--jobs N] [path ...]

For what clang-tidy's shallow analyzer passes by: bounds and lifetimes of containers and iterators by value flow
across functions, use after move, members never initialised, formats, misused library calls; and for tests, which
clang-tidy does not read. Matters of style are left to clang-tidy. What it may not say: tests/tidy/cppcheck.txt.
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "bench")


def run(paths, root, jobs, cache=None, suppressions=None):
    """(well?, what was found, a line each). The cache makes a second run read only what has changed."""
    options = ["--std=c++20", "--language=c++", "--library=googletest", "--inline-suppr", "--quiet",
               "--enable=warning,performance,portability", f"-I{ROOT}/src", f"-I{ROOT}/tests", f"-j{jobs}",
               "--error-exitcode=1", "--template={file}:{line}: {severity}: {message} [{id}]"]
    if cache:
        cache.mkdir(parents=True, exist_ok=True)
        options.append(f"--cppcheck-build-dir={cache}")
    if suppressions:
        options += [f"--suppressions-list={suppressions}", "--enable=information"]   # tells of unmatched ones
    done = subprocess.run(["cppcheck", *options, *map(str, paths)], cwd=root, capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)
    return done.returncode == 0, done.stderr + done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=ROOT / "build-check", type=pathlib.Path, help="its cache lies in there")
    parser.add_argument("--jobs", default=len(os.sched_getaffinity(0)), type=int)
    parser.add_argument("paths", nargs="*", default=FOLDERS)
    arguments = parser.parse_args()
    cache = arguments.build.resolve() / "cppcheck"
    well, found = run(arguments.paths, ROOT, arguments.jobs, cache, ROOT / "tests" / "tidy" / "cppcheck.txt")
    print(found, end="")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
