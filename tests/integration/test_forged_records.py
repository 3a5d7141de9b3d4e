"""Http gates that forward, and lease records that are not true: forged, stale and contradictory ones
come to bounded time, a clear answer, and no loop."""

import json
import socket
import time

from harness.client import get
from harness.forger import FakeHolder
from harness.forwarding import (HOLD, LAG, LEASE, PATIENCE, TTL, Asker, forwarding, peer_port,
                                process_id, sentence)
from harness.forwarding import lone, pair  # noqa: F401 (fixtures)
from harness.measured import measured
from harness.memory import bound
from harness.wait import wait_for
from harness.wire import Wire


def test_case_20_an_unknown_holder_is_waited_for_and_then_503_with_retry_after(lone):
    one = lone("")  # somebody holds who advertises nothing for this gate
    answer = get(one.gate(), timeout=HOLD + 5)
    assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1
    assert HOLD - 0.1 < answer.received - answer.sent < HOLD + LAG
    assert "app" in sentence(answer) or "lease" in json.loads(answer.body)
    assert one.app.seen == []


def refused_at_once(one, method="GET", body=None):
    """502 within a moment; the answer."""
    answer = get(one.gate(), "/x", method=method, body=body)
    assert answer.status == 502, answer
    assert answer.received - answer.sent < LAG, answer
    return answer


def assert_held_then_503(one):
    """Bounded by hold_timeout, and not a busy loop."""
    cpu = one.process.cpu_seconds()
    askers = [Asker(one.gate(), "/x", "POST", b"precious") for _ in range(20)]
    askers += [Asker(one.gate(), "/y") for _ in range(20)]
    for each in askers:
        answer = each.wait()
        assert answer.status == 503 and "Retry-After" in answer.headers, answer
        assert answer.received - answer.sent < HOLD + PATIENCE + LAG, answer
    spent = one.process.cpu_seconds() - cpu
    assert spent < bound(1) * 0.5, f"{spent:.2f} s of processor time for 40 held requests"


def assert_recovers(one):
    """The record goes stale: it takes over, and serves what comes then."""
    before = len(one.app.seen)
    one.forged.stop()
    one.wait_active(TTL + 2, since=one.forged.stopped_at - 0.01)
    answer = get(one.gate(), "/after")
    assert answer.status == 200 and answer.token == 51, answer
    assert [s.path for s in one.app.seen[before:] if s.path == "/after"] == ["/after"]


def test_a_forged_record_that_names_a_foreign_server_is_502_and_gives_it_no_body(lone, app):
    foreign = app("foreign")
    one = lone(foreign.address)
    assert "peer_listen" in sentence(refused_at_once(one))
    # It waits for the body, we for the admission.
    answer = get(one.gate(), "/x", method="POST", body=b"precious")
    assert answer.status in (502, 503), answer
    assert answer.received - answer.sent < HOLD + PATIENCE + LAG
    assert [s.body for s in foreign.seen if s.body] == [], "no body goes to who did not admit"
    assert_recovers(one)


def test_a_forged_record_that_names_the_gates_own_ear_makes_no_loop(lone):
    one = lone(lambda s: "%s:%d" % s.gate())
    for method, body in (("GET", None), ("POST", b"precious")):
        assert "advertise" in sentence(refused_at_once(one, method, body))
    accepted = one.metric("leasehold_gate_connections_total", gate="web")
    assert 2 <= accepted < 10, f"{accepted} connections of two requests"


def test_a_forged_record_that_names_the_gates_own_peer_listener_is_held_and_then_503(lone):
    one = lone(lambda s: f"127.0.0.1:{peer_port(s)}")
    assert_held_then_503(one)


def test_a_forged_record_with_our_own_process_and_peer_listener_makes_no_loop(lone):
    """The hello is right, and still nobody is served: who forwards does not hold."""
    one = lone(lambda s: f"127.0.0.1:{peer_port(s)}")
    one.forged.fields["peer:web"] = f"127.0.0.1:{peer_port(one)}"
    one.forged.fields["process_id"] = process_id(one)
    answer = get(one.gate(), timeout=10)
    assert answer.status in (200, 503), answer
    assert answer.received - answer.sent < HOLD + PATIENCE + LAG


def test_a_peer_that_accepts_and_never_answers_costs_bounded_time(lone, things):
    hole = Wire()
    things.callback(hole.close)
    hole.swallow()
    one = lone(hole.address)
    assert_held_then_503(one)
    assert hole.accepted < 100, f"{hole.accepted} connects for 40 requests"
    assert_recovers(one)


def test_a_record_that_names_a_closed_port_is_held_and_then_503(lone):
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    one = lone(f"127.0.0.1:{port}")
    assert_held_then_503(one)


def test_a_forged_address_beside_a_live_holder_is_mended_by_its_next_renewal(pair, app):
    both = pair()
    foreign = app("foreign")
    both.store.write_record(**{"peer:web": foreign.address})
    wait_for(lambda: both.store.record()["peer:web"] != foreign.address, TTL, "a renewal")
    wait_for(lambda: get(both.second.gate()).app == "a", TTL, "the standby forwards again")
    assert both.first.token() == 1 and both.first.holding()


def test_two_sidecars_that_each_believe_the_other_holds_pass_nothing_round(
        sidecar, app, redis_server):
    """Each has a store of its own in which the other is said to hold, under its real process id."""
    stores = [redis_server(name=f"redis{i}") for i in range(2)]
    apps = (app("a"), app("b"))
    both = [sidecar(f"s{i + 1}", stores[i], gates=[forwarding(apps[i])], lease=LEASE).start()
            for i in range(2)]
    for each in both:
        each.wait_active()
    at = time.time()
    forged = [FakeHolder(stores[i], f"127.0.0.1:{peer_port(both[1 - i])}",
                         process_id=process_id(both[1 - i])) for i in range(2)]
    for each in both:
        each.wait_event("lease.lost", 3, since=at)
    try:
        askers = [Asker(both[i % 2].gate(), "/x", "POST", b"precious") for i in range(20)]
        for each in askers:
            answer = each.wait()
            assert answer.status == 503, answer
            assert answer.received - answer.sent < HOLD + LAG
    finally:
        for each in forged:
            each.stop()
    assert apps[0].seen == [] and apps[1].seen == []


def test_a_stale_record_holds_requests_and_the_survivor_serves_them_after_one_ttl(pair):
    both = pair(hold_timeout="6s")
    killed = both.first.kill9()
    askers = [Asker(both.second.gate(), f"/held{i}", *(("POST", b"x") if i % 2 else ()))
              for i in range(10)]
    answers = [each.wait() for each in askers]
    assert [a.status for a in answers] == [200] * 10, answers
    assert {a.body for a in answers} == {b"b 2"}
    assert sorted(s.path for s in both.apps[1].seen) == sorted(f"/held{i}" for i in range(10))
    longest = max(a.received for a in answers) - killed
    measured(f"holder killed, ttl {TTL} s: what came to the standby was answered {longest:.2f} s later")
    assert longest < TTL * 1.05 + 0.3 + LAG
