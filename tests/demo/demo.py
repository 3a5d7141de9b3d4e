#!/usr/bin/env python3
"""Two unmodified applications, two sidecars, one lease: to play with, or played to you.

    python3 tests/demo/demo.py --bin build/leasehold              to play with, until Ctrl-C
    python3 tests/demo/demo.py --bin build/leasehold --scripted   a failover in four acts; exit
                                                                  code 0 only if it went right
Without a terminal it is always the scripted one. `make run` and `make run DEMO=1` call this.
"""

import argparse
import os
import signal
import sys

import live
import script
from stage import Failure, Stage
from tell import red, say


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/leasehold", help="the program (build/leasehold)")
    parser.add_argument("--scripted", action="store_true", help="play a failover, then end")
    arguments = parser.parse_args()
    if not os.access(arguments.bin, os.X_OK):
        say(f"demo: {arguments.bin} is not there or cannot be run; `make build` makes it")
        return 2
    # Whoever ends us gets the same orderly end as Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.stdout.reconfigure(errors="replace")  # a terminal without arrows shows question marks
    terminal = sys.stdout.isatty() and sys.stdin.isatty()
    with Stage(arguments.bin) as stage:
        try:
            if arguments.scripted or not terminal:
                return script.play(stage)
            return live.follow(stage)
        except Failure as failure:
            say()
            say(red("It went wrong: ") + str(failure))
            for sidecar in stage.sidecars:
                say(f"\nthe end of {sidecar.name}'s log:")
                say("\n".join(sidecar.log.read_text(errors="replace").splitlines()[-12:]))
            return 1
        except KeyboardInterrupt:
            say("\nended; everything it started is gone")
            return 130


if __name__ == "__main__":
    sys.exit(main())
