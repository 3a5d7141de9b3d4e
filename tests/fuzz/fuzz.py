#!/usr/bin/env python3
"""Fuzzes: runs the libFuzzer programs of a build with LEASEHOLD_FUZZ, one after the other, on one core.

    python3 tests/fuzz/fuzz.py [--build build-fuzz] [--seconds 60] [target ...]

Starts from tests/fuzz/corpus/<target> and what earlier runs found, which is kept in
<build>/corpus/<target>; an input that fails is kept in <build>/crashes, with the command to run it
again. Exit code 1 if a target failed.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

FUZZ = pathlib.Path(__file__).resolve().parent
ROOT = FUZZ.parents[1]
SAY_EVERY_S = 15

# What bounds a run; the bound on an input's length is each target's own (CMakeLists.txt).
LIMITS = (
    "-timeout=10",          # s; an input takes well under 10 ms: what reaches this hangs
    "-rss_limit_mb=1024",   # AddressSanitizer's own shadow and quarantine take some 300 of it
    "-malloc_limit_mb=16",  # one allocation; no input of a few KiB may cost that much
)
# "#12345 NEW cov: 380 ft: 1200 corp: 95/12Kb exec/s: 9000 ..."
STATUS = re.compile(r"#(\d+)\s+\S+\s+cov: (\d+) ft: (\d+) corp: (\d+)/(\S+).*?exec/s: (\d+)")


class Run:
    """One target's run: its command, and what its output said last."""

    def __init__(self, build, target, max_len, seconds):
        self.target = target
        self.program = build / "tests" / "fuzz" / f"fuzz_{target}"
        self.log = build / "logs" / f"{target}.log"
        self.crashes = build / "crashes"
        corpus = build / "corpus" / target
        for folder in (self.log.parent, self.crashes, corpus):
            folder.mkdir(parents=True, exist_ok=True)
        dictionary = FUZZ / "dict" / f"{target}.dict"
        self.command = [
            str(self.program), f"-max_total_time={seconds}", f"-max_len={max_len}", *LIMITS,
            # Entropic scheduling walks all features for each input: half of the time of a large target.
            "-entropic=0", "-print_funcs=0", "-print_final_stats=1", "-reload=0",
            f"-artifact_prefix={self.crashes}/{target}-",
            *([f"-dict={dictionary}"] if dictionary.exists() else []),
            str(corpus), str(FUZZ / "corpus" / target)]
        self.status = None
        self.stats = {}
        self.crash = None

    def read(self, line):
        found = STATUS.search(line)
        if found:
            self.status = found.groups()
        found = re.match(r"stat::(\w+):\s+(\d+)", line)
        if found:
            self.stats[found[1]] = int(found[2])
        found = re.search(r"Test unit written to (\S+)", line)
        if found:
            self.crash = found[1]

    def say(self, began):
        if self.status:
            runs, coverage, features, inputs, size, speed = self.status
            print(f"  {time.monotonic() - began:4.0f} s: {runs} runs, {speed}/s, {coverage} edges, "
                  f"{features} features, corpus {inputs} inputs, {size}", flush=True)

    def go(self):
        env = dict(os.environ, UBSAN_OPTIONS="print_stacktrace=1",
                   ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1")
        began = said = time.monotonic()
        with open(self.log, "wb") as log, subprocess.Popen(
                self.command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            for raw in process.stdout:
                log.write(raw)
                self.read(raw.decode(errors="replace"))
                if time.monotonic() - said >= SAY_EVERY_S:
                    said = time.monotonic()
                    self.say(began)
        self.say(began)
        print(f"  {self.target}: {self.stats.get('number_of_executed_units', 0)} runs in "
              f"{time.monotonic() - began:.0f} s, {self.stats.get('average_exec_per_sec', 0)}/s, "
              f"{self.stats.get('new_units_added', 0)} inputs added, peak "
              f"{self.stats.get('peak_rss_mb', 0)} MiB", flush=True)
        return process.returncode

    def explain(self, code):
        print(f"  {self.target} FAILED (exit code {code}); the end of {self.log}:")
        lines = self.log.read_text(errors="replace").splitlines()
        for line in lines[-60:]:
            print(f"    {line}")
        if self.crash:
            print(f"  again: {self.program} {self.crash}")


def targets(build):
    """[(name, max_len)], as CMake wrote them."""
    lines = (build / "tests" / "fuzz" / "targets.txt").read_text().splitlines()
    return [(line.split()[0], int(line.split()[1])) for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=ROOT / "build-fuzz", type=pathlib.Path)
    parser.add_argument("--seconds", default=60, type=int, help="for each target")
    parser.add_argument("targets", nargs="*", metavar="target")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    known = targets(build)
    unknown = set(arguments.targets) - {name for name, _ in known}
    if unknown:
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(name for name, _ in known)}")
    failed = []
    for name, max_len in known:
        if arguments.targets and name not in arguments.targets:
            continue
        print(f"fuzz: {name}, {arguments.seconds} s", flush=True)
        run = Run(build, name, max_len, arguments.seconds)
        code = run.go()
        if code != 0:
            run.explain(code)
            failed.append(name)
    print(f"fuzz: failed: {', '.join(failed)}" if failed else "fuzz: nothing failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
