#!/usr/bin/env python3
"""Real sidecars, applications and stores under a nemesis; then an offline checker. See tests/README.md.

    make chaos [MINUTES=20] [STORE=redis|file|both] [SEED=n]
    LEASEHOLD_BIN=build/leasehold python3 tests/chaos/chaos.py --minutes 2 --store redis --seed 7
    python3 tests/chaos/chaos.py --check DIRECTORY      the checker alone, over a run's records

Exit code 0 only if no rule was violated. The last line of each store has the figures.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from chaos import roads  # noqa: E402
from chaos.checker import check  # noqa: E402
from chaos.clients import HOLD_IDS, Clients  # noqa: E402
from chaos.nemesis import Nemesis  # noqa: E402
from chaos.report import print_report  # noqa: E402
from chaos.scene import Scene, settle  # noqa: E402
from chaos.store_log import StoreLog  # noqa: E402
from moves.scene import SLOW_IDS, Load  # noqa: E402

WEB_RATE, HOLD_RATE = 200, 15
# From the schedule to the last byte: beyond a gate's hold_timeout (grace + hold-off + 5 s).
TIMEOUT = 10
WARM_UP = 2.0  # seconds, before the first storm


def say(text=""):
    print(text, flush=True)


def play(directory, store, way, seed, minutes, split=False, programs=None, quiet=False):
    """One run; its records are in `directory`."""
    with contextlib.ExitStack() as stack:
        scene = stack.enter_context(contextlib.closing(
            Scene(directory, store, way, seed, split=split, programs=programs)))
        until = time.monotonic() + minutes * 60
        if store == "redis":
            scene.store_log = stack.enter_context(contextlib.closing(
                StoreLog(scene, directory / "store.jsonl")))
        scene.start()
        loads = [stack.enter_context(contextlib.closing(Load(
            directory, [n.gate(gate) for n in scene.nodes], rate=rate, first_id=first,
            timeout=TIMEOUT))) for gate, rate, first in (("web", WEB_RATE, SLOW_IDS),
                                                         ("hold", HOLD_RATE, HOLD_IDS))]
        clients = stack.enter_context(contextlib.closing(Clients(scene, seed)))
        scene.clients = clients
        settle(WARM_UP)
        scene.journal.write("rss", bytes=scene.rss())
        nemesis = Nemesis(scene, seed, (lambda text: None) if quiet else
                          lambda text: say(f"  {text}\n    {loads[0].progress()}"))
        number = 1
        while nemesis.storm(number, until):
            number += 1
        scene.journal.write("rss", bytes=scene.rss())
        for load in loads:
            load.stop()
        clients.close()
        scene.journal.write("end")


def run(arguments, way):
    bad = []
    for store in ("redis", "file") if arguments.store == "both" else (arguments.store or "redis",):
        directory = pathlib.Path(tempfile.mkdtemp(prefix=f"leasehold-chaos-{store}-"))
        say(f"== chaos: {store}, {way.kind}, seed {arguments.seed}, {arguments.minutes:g} minutes; "
            f"records: {directory}")
        keep = True
        try:
            play(directory, store, way, arguments.seed, arguments.minutes, arguments.split_brain,
                 dict(each.split("=", 1) for each in arguments.program))
            checker = check(directory)
            print_report(checker, say)
            bad += checker.faults
            keep = bool(checker.faults) or arguments.keep
        finally:
            if not keep:
                shutil.rmtree(directory, ignore_errors=True)
    return 1 if bad else 0


def the_way(arguments):
    """Namespaces where they work, loopback else; not to return when it starts again inside one."""
    if arguments.inside:
        return roads.Namespaces
    if arguments.variant == "loopback":
        return roads.Loopback
    way, why = roads.way_into_a_network()
    if way is None:
        if arguments.variant == "namespaces":
            sys.exit(f"chaos: no network namespaces: {why}")
        say(f"chaos: on loopback with fault proxies, because there are no network namespaces: {why}")
        return roads.Loopback
    return roads.enter(way)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--store", choices=("redis", "file", "both", ""), default="redis")
    parser.add_argument("--seed", default="", help="of the plan of faults; by default a new one")
    parser.add_argument("--variant", choices=("namespaces", "loopback"))
    parser.add_argument("--keep", action="store_true", help="keep the records of a clean run too")
    parser.add_argument("--check", metavar="DIRECTORY", help="judge the records of a run again")
    parser.add_argument("--split-brain", action="store_true",
                        help="give s2 a store of its own: the checker must see it")
    parser.add_argument("--program", action="append", default=[], metavar="s2=PATH",
                        help="run another program as that sidecar: the checker must see a broken one")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.seed:
        arguments.seed = str(int.from_bytes(os.urandom(3), "big"))
        sys.argv += ["--seed", arguments.seed]
    return arguments


def main():
    arguments = parse()
    if arguments.check:
        checker = check(pathlib.Path(arguments.check))
        print_report(checker, say)
        return 1 if checker.faults else 0
    way = the_way(arguments)
    # A TERM ends it as Ctrl-C does: through every `finally`.
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try:
        return run(arguments, way)
    except KeyboardInterrupt:
        say("chaos: interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
