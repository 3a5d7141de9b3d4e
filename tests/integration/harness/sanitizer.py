"""What the sanitizers find in any process of a test fails that test.

A program with AddressSanitizer and UndefinedBehaviorSanitizer in it writes each report into a file of
one folder (their option log_path), whoever started it and whatever becomes of its output and its exit
code; so a sidecar that no assertion looks at again cannot die of a fault, or leak at its end, unseen.
It also ends with EXIT_CODE, which no program of ours uses, lest a test take a fault for an answer.
"""

import functools
import os
import pathlib
import re

EXIT_CODE = 99
FOLDER = "LEASEHOLD_SANITIZER_REPORTS"   # names the folder, for whoever runs the tests
PASSED_ON = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
# In an output, where a report goes that found no folder.
REPORT = re.compile(r"^.*(?:ERROR: (?:Address|Leak)Sanitizer|runtime error:|Sanitizer:DEADLYSIGNAL).*$", re.M)


@functools.cache
def has_sanitizers(program):
    with open(program, "rb") as f:
        return b"__asan_init" in f.read()


def environment(folder):
    """What a run of tests needs in its environment, so that all its processes report to the folder."""
    common = f"exitcode={EXIT_CODE}:log_path={pathlib.Path(folder).resolve()}/report"
    return {FOLDER: str(folder),
            "ASAN_OPTIONS": f"detect_leaks=1:abort_on_error=0:detect_stack_use_after_return=1:{common}",
            "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:{common}"}


def passed_on():
    """Of this environment, what a child with an environment of its own has to have as well."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def fault_of(exit_code, output):
    """Why a process that ended so died of a fault, in a sentence; empty if it did not."""
    line = REPORT.search(output)
    if line:
        return f"a sanitizer's report in its output: {line[0]}"
    return f"ended with {EXIT_CODE}, a sanitizer's exit code" if exit_code == EXIT_CODE else ""


class Reports:
    """The files of the folder, each told once."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._told = set(self._folder.iterdir())

    def new(self):
        """What was reported since the last call, as text; empty if nothing."""
        found = sorted(set(self._folder.iterdir()) - self._told)
        self._told.update(found)
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')}" for path in found)


def begin(program, make_folder):
    """For a session of tests: its Reports, None where the program has no sanitizers. Who runs the tests
    may have named the folder; if not, one is made, and the environment set for what the tests start."""
    if not has_sanitizers(program):
        return None
    if FOLDER not in os.environ:
        os.environ.update(environment(make_folder()))
    return Reports(os.environ[FOLDER])
