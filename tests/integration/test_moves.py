"""Planned moves, rolling replacement and restarts under 1000 requests a second: the short form of
`make moves` (tests/moves), every part of it once.

Delays are printed, not judged, save where a promise names a figure: a busy test machine holds any one
request up. What is judged is that no request failed, none was executed twice, none that was
acknowledged is missing, and each reached the application of the holder of its time.
"""

import pathlib
import statistics
import sys

import pytest

from harness.measured import measured

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from moves import scenarios  # noqa: E402
from moves.judge import Line, Request, Verdict  # noqa: E402
from moves.scene import Scene  # noqa: E402
from test_costs import limit_for  # noqa: E402


def verdict_of(requests, lines, terms=None):
    """Of records as the two programs write them, one a string."""
    at = 10 ** 9
    made = [Request(i + 1, "POST/0", 0, at + i * 10 ** 6, at + i * 10 ** 6, at + (i + 3) * 10 ** 6,
                    *each) for i, each in enumerate(requests)]
    return Verdict(made, [Line(*line) for line in lines], [], terms or {1: "a", 2: "b"}, 1, 1000)


RIGHT = [("ok", "a", 1, 0), ("ok", "b", 2, 0)]
DONE = [("B", 1, "a", 1, 1, 1), ("E", 2, "a", 1, 1, 1), ("B", 3, "b", 2, 2, 1), ("E", 4, "b", 2, 2, 1)]


@pytest.mark.parametrize("fault, requests, lines", [
    ("", RIGHT, DONE),
    ("failed", [RIGHT[0], ("reset", "-", 0, 0)], DONE),
    ("executed or sent twice", RIGHT, [*DONE, ("E", 5, "b", 1, 2, 2)]),
    ("executed or sent twice", RIGHT, [*DONE, ("B", 5, "b", 1, 2, 2)]),
    ("never executed", RIGHT, DONE[:3]),
    ("a wrong body", RIGHT, [*DONE[:3], ("W", 4, "b", 2, 2, 1)]),
    ("answered by another", [RIGHT[0], ("ok", "a", 1, 0)], DONE),
    ("outside its sidecar's term", RIGHT, [*DONE, ("E", 5, "a", 7, 1, 9)]),
    ("outside its sidecar's term", RIGHT, [*DONE[:2], ("E", 4, "a", 2, 2, 1)]),
    ("stamped more than one", RIGHT, [*DONE, ("E", 5, "b", 7, 2, 1)]),
])
def test_the_verdict_finds_each_kind_of_fault(fault, requests, lines):
    faults = verdict_of(requests, lines).faults
    assert fault in "".join(faults) if fault else faults == [], faults


@pytest.fixture
def scene(things, tmp_path):
    """scene(kind, ...) -> Scene, started."""
    return lambda kind, **options: things.enter_context(Scene(tmp_path, kind, **options)).start()


def judged(title, verdict):
    measured(f"{title}: {verdict.figures()}")
    assert verdict.faults == [], "\n".join(verdict.faults)
    return verdict


@pytest.mark.parametrize("kind, moves", [("redis", 6), ("file", 3)])
def test_planned_moves_under_load_fail_no_request_and_execute_none_twice(scene, kind, moves):
    verdict = judged(f"moves on {kind}", scenarios.planned_moves(scene(kind), moves))
    assert len(verdict.moves) == moves and len(verdict.added) == moves


def test_a_move_waits_for_a_slow_download_and_cuts_a_websocket_and_breaks_nothing_else(scene):
    both = scene("redis", **scenarios.LONG)
    verdict = judged("a move with a WebSocket and a download open",
                     scenarios.moves_with_long_ones(both, 2, download_seconds=1.5))
    # Each move had to wait for the download that was under way in it.
    assert all(m.done >= d.ended_at - 1e8 for m, d in zip(verdict.moves, verdict.downloads))
    assert min(m.took for m in verdict.moves) > 500


@pytest.mark.parametrize("kind, pre_stop", [("redis", True), ("file", False)],
                         ids=["by_pre_stop_on_redis", "by_sigterm_alone_on_file"])
def test_replacing_three_sidecars_in_turn_fails_no_request(scene, kind, pre_stop):
    verdict = judged(f"rolling replacement of three on {kind}", scenarios.rolling_replacement(
        scene(kind, count=3, steady=True), 1, pre_stop=pre_stop))
    measured("a sidecar that left was gone after "
             + ", ".join(f"{t * 1000:.0f}" for t in verdict.exits)
             + f" ms (limit {scenarios.EXIT_LIMIT * 1000:.0f} ms)")


def test_a_holder_killed_or_stopped_under_load_costs_what_was_in_flight_and_executes_nothing_twice(
        scene):
    verdict = judged("a kill -9 and a SIGSTOP of the holder",
                     scenarios.crashes(scene("redis", **scenarios.CRASHING), 1))
    # At the moment of each: what was at the one process, at a thousand a second some milliseconds.
    measured(f"what was in flight and failed: {dict(verdict.results)}")


@pytest.mark.parametrize("kind", ["redis", "file"])
def test_a_killed_holder_serves_again_within_150_ms_of_its_restart(scene, kind):
    took = scenarios.restarts(scene(kind, count=2 if kind == "redis" else 1, steady=True), 3)
    limit = limit_for(150, 400, 4000, f"restart on {kind}")
    measured(f"kill -9 and restart with a state_dir on {kind}: first 200 after "
             + ", ".join(f"{t:.0f}" for t in took) + f" ms (limit {limit:.0f} ms)")
    assert statistics.median(took) < limit
