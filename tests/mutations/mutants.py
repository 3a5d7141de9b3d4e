#!/usr/bin/env python3
"""Deliberate faults of the real source, each caught by the simulator or it is the simulator's fault. See tests/README.md.

    make mutants                                             the table: mutant, rule broken, caught by, seeds, seconds
    python3 tests/mutations/mutants.py --build build [-k PART] [--jobs N]
    python3 tests/mutations/mutants.py --build build --measure [-k PART]    measures anew and rewrites limits.txt

Exit code 0 only if the source as it is breaks no rule and every mutant was caught within its limit.
"""

import argparse
import os
import pathlib
import sys
import time
from concurrent.futures import as_completed

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from mutations import table  # noqa: E402
from mutations.mutant import Limit, read_limits, write_limits  # noqa: E402
from mutations.run import Runner, checkers_of  # noqa: E402

STREAMS = (1, 1_000_001, 2_000_001)   # first seeds; the worst of them is what limits come from
MEASURE_SEEDS_MAX = 10_000
FACTOR = 8         # limit / measured: worlds are drawn anew whenever the simulator's drawing changes
LIMIT_MIN = 40     # below it a run costs nothing
STEPS = (10, 20, 30, 40, 50, 60, 80, 100)


def say(text=""):
    print(text, flush=True)


def rounded_up(number):
    scale = 1
    while number > 100 * scale:
        scale *= 10
    return next(step * scale for step in STEPS if step * scale >= number)


def measure(runner, mutants):
    limits = read_limits()
    bad = 0
    started = {runner.start(mutant, STREAMS, MEASURE_SEEDS_MAX): mutant for mutant in mutants}
    for future in as_completed(started):
        mutant, verdict = started[future], future.result()
        say(f"{mutant.name}: {verdict.streams}\n    {verdict.rule}\n    {verdict.what}")
        if verdict.fault:
            say(f"    FAULT: {verdict.fault}")
            bad += 1
        else:
            worst = max(verdict.streams)
            limits[mutant.name] = Limit(max(LIMIT_MIN, rounded_up(worst * FACTOR)), worst)
            write_limits({mutant.name: limits[mutant.name] for mutant in table.MUTANTS if mutant.name in limits})
    say(f"{len(mutants) - bad} measured, {bad} not")
    return 1 if bad else 0


def print_row(mutant, verdict, checkers):
    say(f"{'FAILED' if verdict.fault else 'caught'}  {mutant.name}")
    say(f"        breaks: {mutant.breaks}")
    if verdict.fault:
        say(f"        {verdict.fault}")
    else:
        caught_by = checkers.get(verdict.rule, "a CHECK of the engine")
        say(f"        caught by {caught_by} (\"{verdict.rule}\"), seed {verdict.after} of at most {verdict.limit}, "
            f"{verdict.seconds:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build", type=pathlib.Path)
    parser.add_argument("--jobs", default=len(os.sched_getaffinity(0)), type=int)
    parser.add_argument("-k", default="", metavar="PART", help="only mutants whose name has PART in it")
    parser.add_argument("--measure", action="store_true", help="measure and rewrite limits.txt")
    parser.add_argument("--missing", action="store_true", help="only mutants that limits.txt does not know")
    arguments = parser.parse_args()
    mutants = [mutant for mutant in table.MUTANTS if arguments.k in mutant.name]
    if arguments.missing:
        mutants = [mutant for mutant in mutants if mutant.name not in read_limits()]
    if not mutants:
        parser.error(f"-k {arguments.k}: no mutant has this in its name")
    began = time.monotonic()
    runner = Runner(arguments.build, arguments.jobs)
    if arguments.measure:
        return measure(runner, mutants)
    checkers = checkers_of()
    control = runner.start_control(table.MUTANTS)
    futures = [runner.start(mutant) for mutant in mutants]
    failed = 0
    for mutant, future in zip(mutants, futures):
        verdict = future.result()
        failed += bool(verdict.fault)
        print_row(mutant, verdict, checkers)
    verdict = control.result()
    say(f"{'FAILED' if verdict.fault else 'clean '}  the source as it is, {verdict.limit} seeds, {verdict.seconds:.1f} s")
    if verdict.fault:
        say(f"        {verdict.fault}")
    say(f"{len(mutants) - failed} of {len(mutants)} mutants caught, {failed} not; "
        f"{time.monotonic() - began:.0f} s")
    return 1 if failed or verdict.fault else 0


if __name__ == "__main__":
    sys.exit(main())
