#!/usr/bin/env python3
"""Runs every test of a build folder and counts them: ctest, then pytest (mutations, integration, tidy).

    python3 tests/run.py --build build [--jobs N] [--sanitized] [cpp] [mutations] [integration] [tidy] [helm]

The last line is "N passed, N failed": GoogleTest cases and pytest cases; a program that is neither
(the simulator) counts as one, and so does one that died before it could report. What was skipped is
named before it and counts as neither. Exit code 0 only if nothing failed and something ran.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

from harness import sanitizer  # noqa: E402

KINDS = ("cpp", "mutations", "integration", "tidy", "helm")
BY_THEMSELVES = ("helm",)   # only when asked for: `make helm-test` fetches what they need
NOT_SANITIZED = ("mutations",)   # they compile their own programs, and judge tests, not the program
PYTEST_NOTHING_COLLECTED = 5


class Count:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add_junit(self, path):
        """Every case of a JUnit file, as GoogleTest, ctest and pytest write it."""
        for case in ElementTree.parse(path).iter("testcase"):
            name = f"{case.get('classname') or ''}.{case.get('name')}".lstrip(".")
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed.append(name)
            elif case.find("skipped") is not None or case.get("status") == "notrun":
                if not case.get("name", "").startswith("DISABLED_"):
                    self.skipped.append(name)
            else:
                self.passed += 1


def environment(arguments, results):
    env = dict(os.environ, LEASEHOLD_BIN=str(arguments.build / "leasehold"),
               LEASEHOLD_JOBS=str(arguments.jobs), PYTHONDONTWRITEBYTECODE="1")
    env.setdefault("LEASEHOLD_AWS_TOOLS", str(ROOT / "build" / "tools" / "aws"))
    for name in ("http_proxy", "HTTP_PROXY"):   # every test speaks to loopback
        env.pop(name, None)
    if arguments.sanitized:
        env.update(LEASEHOLD_SANITIZED="1", **sanitizer.environment(results / "sanitizer"))
    return env


def run_cpp(arguments, results, count):
    gtest = results / "gtest"
    gtest.mkdir()
    junit = results / "ctest.xml"
    env = dict(environment(arguments, results), GTEST_OUTPUT=f"xml:{gtest}/", GTEST_BRIEF="1")
    subprocess.run(["ctest", "--test-dir", str(arguments.build), "--output-on-failure",
                    "--parallel", str(arguments.jobs), "--output-junit", str(junit)],
                   env=env, stdin=subprocess.DEVNULL, check=False)
    if not junit.exists():
        count.failed.append("ctest itself")
        return
    for program in ElementTree.parse(junit).iter("testcase"):
        name = program.get("name")
        failed = program.get("status") not in ("run", "notrun")
        report = gtest / f"{name}.xml"
        before = len(count.failed)
        if report.exists():
            count.add_junit(report)
        if failed and len(count.failed) == before:   # died, hung, or a fault after the last case
            count.failed.append(f"{name} (the program)")
        elif not failed and not report.exists():
            count.passed += 1


def run_pytest(arguments, results, folder, count):
    if not any((ROOT / "tests" / folder).glob("**/test_*.py")):
        return
    junit = results / f"{folder}.xml"
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                           f"--junitxml={junit}", f"tests/{folder}"],
                          cwd=ROOT, env=environment(arguments, results), stdin=subprocess.DEVNULL, check=False)
    before = len(count.failed)
    if junit.exists():
        count.add_junit(junit)
    if done.returncode not in (0, PYTEST_NOTHING_COLLECTED) and len(count.failed) == before:
        count.failed.append(f"pytest tests/{folder} (the run itself)")


def add_sanitizer_reports(results, count):
    """Whichever process wrote one, in whichever test: also one that no test looked at again."""
    for report in sorted((results / "sanitizer").iterdir()):
        text = report.read_text(errors="replace")
        print(f"== {report}\n{text}", flush=True)
        count.failed.append(f"a sanitizer's report: {report}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--jobs", default=len(os.sched_getaffinity(0)), type=int)
    parser.add_argument("--sanitized", action="store_true", help="the build has the sanitizers in it")
    parser.add_argument("kinds", nargs="*", metavar="kind",
                        help=f"{', '.join(KINDS)}; default all but {', '.join(BY_THEMSELVES)}, with --sanitized all "
                             f"but {', '.join(NOT_SANITIZED)}")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    unknown = set(arguments.kinds) - set(KINDS)
    if unknown:
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(KINDS)}")
    left_out = NOT_SANITIZED if arguments.sanitized else BY_THEMSELVES
    kinds = arguments.kinds or [kind for kind in KINDS if kind not in left_out]
    results = arguments.build / "test-results"
    shutil.rmtree(results, ignore_errors=True)
    (results / "sanitizer").mkdir(parents=True)
    count = Count()
    for kind in kinds:
        began = time.monotonic()
        print(f"== {kind} tests", flush=True)
        if kind == "cpp":
            run_cpp(arguments, results, count)
        else:
            run_pytest(arguments, results, kind, count)
        print(f"== {kind} tests took {time.monotonic() - began:.0f} s", flush=True)
    add_sanitizer_reports(results, count)
    for name in count.skipped:
        print(f"skipped: {name}")
    for name in count.failed:
        print(f"FAILED: {name}")
    print(f"{count.passed} passed, {len(count.failed)} failed", flush=True)
    return 1 if count.failed or count.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
