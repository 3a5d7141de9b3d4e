#!/usr/bin/env python3
"""Planned moves, rolling replacement and restarts under 1000 requests a second. See tests/README.md.

    make moves [MOVES=50] [STORE=redis|file]        both stores by default
    LEASEHOLD_BIN=build/leasehold python3 tests/moves/moves.py --moves 50 --store redis

Exit code 0 only if no request failed (in crashes: but what was in flight), none was executed twice,
none that was acknowledged is missing and each reached the application of the holder of its time. The
last line has the figures.
"""

import argparse
import pathlib
import shutil
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from moves.scene import Scene  # noqa: E402
from moves import scenarios  # noqa: E402

RESTARTS = 10
RESTART_LIMIT_MS = 150
ROUNDS = 2       # of rolling replacement
LONG_MOVES = 4   # each waits for a download of 3 s
CRASHES = 3


def say(text=""):
    print(text, flush=True)


class Run:
    def __init__(self, directory, moves):
        self._directory = directory
        self._moves = moves
        self.faults = []
        self.figures = []

    def part(self, title, play):
        """One scenario: its faults are told and counted, whatever it stumbled over."""
        say(f"\n== {title}")
        try:
            return play()
        except AssertionError as error:
            self._failed(title, str(error))
        return None

    def _failed(self, title, text):
        self.faults.append(f"{title}: {text}")
        say(f"FAILED {text}")

    def _verdict(self, title, verdict):
        say(verdict.figures())
        for fault in verdict.faults:
            self._failed(title, fault)
        return verdict

    def all(self, kind):
        self.part(f"{kind}: {self._moves} planned moves", lambda: self._planned(kind))
        self.part(f"{kind}: {LONG_MOVES} moves with a WebSocket and a 3 s download open",
                  lambda: self._long(kind))
        self.part(f"{kind}: rolling replacement of three, {ROUNDS} times",
                  lambda: self._rolling(kind, pre_stop=True))
        self.part(f"{kind}: the same by SIGTERM alone", lambda: self._rolling(kind, pre_stop=False))
        self.part(f"{kind}: {CRASHES} x kill -9 and {CRASHES} x SIGSTOP of the holder under load",
                  lambda: self._crashes(kind))
        self.part(f"{kind}: {RESTARTS} x kill -9 of the holder and restart",
                  lambda: self._restarts(kind))

    def _scene(self, kind, name, **options):
        return Scene(self._directory / f"{kind}-{name}", kind, **options)

    def _planned(self, kind):
        with self._scene(kind, "moves") as scene:
            verdict = self._verdict(f"{kind} moves",
                                    scenarios.planned_moves(scene.start(), self._moves, say))
            self.figures.append(f"{kind} {len(verdict.moves)} moves: {len(verdict.requests)} requests, "
                                f"{verdict.failed} failed, {verdict.twice} executed twice, added "
                                f"delay worst {max(verdict.added):.0f} ms median "
                                f"{statistics.median(verdict.added):.0f} ms")

    def _long(self, kind):
        with self._scene(kind, "long", **scenarios.LONG) as scene:
            verdict = self._verdict(f"{kind} long", scenarios.moves_with_long_ones(
                scene.start(), LONG_MOVES, say))
            say(f"{len(verdict.downloads)} downloads whole; WebSockets echoed "
                f"{sum(t.echoes for t in verdict.tunnels)} words over "
                f"{sum(t.opened for t in verdict.tunnels)} connections")

    def _rolling(self, kind, pre_stop):
        name = "rolling" if pre_stop else "sigterm"
        with self._scene(kind, name, count=3, steady=True) as scene:
            verdict = self._verdict(f"{kind} {name}", scenarios.rolling_replacement(
                scene.start(), ROUNDS, say, pre_stop))
            self.figures.append(f"{len(verdict.exits)} sidecars replaced: {verdict.failed} failed")

    def _crashes(self, kind):
        with self._scene(kind, "crashes", **scenarios.CRASHING) as scene:
            verdict = self._verdict(f"{kind} crashes",
                                    scenarios.crashes(scene.start(), CRASHES, say))
            say(f"what was in flight: {dict(verdict.results)}")
            self.figures.append(f"{len(verdict.moves)} crashes: {verdict.twice} executed twice, "
                                f"{verdict.lost} lost")

    def _restarts(self, kind):
        # On one host a standby has the lease within milliseconds of a death, so alone there.
        with self._scene(kind, "restarts", count=2 if kind == "redis" else 1,
                         steady=True) as scene:
            took = scenarios.restarts(scene.start(), RESTARTS, say)
            say(f"first 200 after the start: worst {max(took):.0f} ms, median "
                f"{statistics.median(took):.0f} ms (limit {RESTART_LIMIT_MS} ms)")
            if max(took) > RESTART_LIMIT_MS:
                self._failed(f"{kind} restarts", f"worst {max(took):.0f} ms")
            self.figures.append(f"restart worst {max(took):.0f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--store", choices=("redis", "file", "both", ""), default="both")
    parser.add_argument("--keep", action="store_true", help="keep logs and records, and say where")
    arguments = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="leasehold-moves-"))
    run = Run(directory, arguments.moves)
    try:
        for kind in ("redis", "file") if arguments.store in ("both", "") else (arguments.store,):
            run.all(kind)
    except KeyboardInterrupt:
        return 130
    finally:
        if arguments.keep or run.faults:
            say(f"\nlogs and records: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    say(f"\n{'moves: all well' if not run.faults else f'moves: {len(run.faults)} FAULTS'}: "
        + "; ".join(run.figures))
    return 1 if run.faults else 0


if __name__ == "__main__":
    sys.exit(main())
