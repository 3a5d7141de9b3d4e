"""Listeners of the signal socket that do not do their part (CASES 11)."""

import signal
import time

import pytest

from harness.client import get
from harness.measured import measured
from harness.pair import http_gate
from harness.wait import wait_for, watch_for

GRACE = 1.0
TTL, MARGIN = 2.0, 0.04  # of the case with a loss


@pytest.fixture
def holder(sidecar, app):
    def make(store, **lease):
        one = sidecar("s1", store, gates=[http_gate(app("a"))],
                      lease={"ttl": "4s", "step_down_grace": "1s", **lease}).start()
        one.wait_active()
        return one
    return make


def registered(one, **more):
    told = one.signal_reader()
    told.send(op="register", **more)
    assert told.wait_answer("register", 2)[1]["ok"] is True
    return told


def test_case_11_a_step_down_is_forced_at_grace_when_a_listener_never_says_drained(
        tmp_path, holder):
    one = holder(tmp_path / "store")
    told = registered(one)
    outcome = one.step_down().json()
    assert outcome["outcome"] == "taken_back_by_this_process"
    drained = told.wait_event("lease.draining", 1)[1]
    assert 0 < int(drained["grace_ms"]) <= GRACE * 1000
    took = one.last("lease.released").at - one.last("lease.draining").at
    assert GRACE - 0.01 <= took <= GRACE + 0.3, f"released {took:.3f} s after the drain began"
    measured(f"case 11: a listener that never says drained costs a step-down {took:.3f} s "
             f"(grace {GRACE} s)")


def test_case_11_a_loss_shuts_the_gate_by_expiry_when_a_listener_never_says_drained(
        redis_server, fault_proxy, holder, client):
    store = redis_server()
    proxy = fault_proxy(store)
    one = holder(proxy, ttl="2s")
    told = registered(one)
    asking = client(one.gate(), rate=100)
    proxy.black_hole()
    shut = one.wait_event("gate.closed", 5).at
    # Seen by the proxy a little after it was sent, so the bound is a little wide.
    last = max(w.at for w in proxy.writes() if w.answer_passed)
    served = max(r.sent for r in asking.oks())
    asking.stop()
    assert served <= last + TTL - MARGIN, \
        f"served {served - last:.3f} s after the last confirmed renewal was sent"
    assert served > last + 0.5 * TTL, "it served on while it could"
    assert shut <= last + TTL, f"told {shut - last:.3f} s after that renewal"
    assert get(one.gate()).status == 503
    wait_for(lambda: told.events("lease.lost") or told.events("lease.released"), 1,
             "the listener is told of the end")


def test_case_11_a_listener_that_vanished_counts_as_drained(
        tmp_path, holder):
    one = holder(tmp_path / "store", step_down_grace="10s")
    registered(one)  # and says nothing; but its process ends:
    one.readers[0].close()
    outcome = one.step_down(timeout=20).json()
    assert outcome["outcome"] == "taken_back_by_this_process"
    took = one.last("lease.released").at - one.last("lease.draining").at
    assert took < 1, "one that vanished counts as drained"


def test_a_listener_that_says_drained_ends_the_drain_and_a_wrong_token_does_not(tmp_path, holder):
    one = holder(tmp_path / "store", step_down_grace="10s")
    told = registered(one, lease="app")
    assert one.step_down(wait=False).status == 202
    token = told.wait_event("lease.draining", 2)[1]["token"]
    told.send(op="drained", lease="app", token="77", id=1)
    answer = told.wait_answer("drained", 2)[1]
    assert answer["ok"] is False and answer["error"] == "not_holder"
    watch_for(lambda: not one.events("lease.released"), 0.3, "released on another term's drained")
    told.send(op="drained", lease="app", token=token, id=2)
    wait_for(lambda: [l for _, l in told.answers("drained") if l.get("id") == 2 and l["ok"]], 2,
             "its drained is taken")
    one.wait_event("lease.released", 1)
    assert one.last("lease.released").at - one.last("lease.draining").at < 5
    told.send(op="drained", lease="app", token=token, id=3)
    late = wait_for(lambda: [l for _, l in told.answers("drained") if l.get("id") == 3], 2,
                    "a late drained is answered")[0]
    assert late["ok"] is False and late["error"] == "not_holder", "it tells the truth"


def test_step_down_over_the_socket_carries_its_precondition(tmp_path, holder):
    one = holder(tmp_path / "store")
    told = one.signal_reader()
    told.send(op="step_down", lease="app", expected_node_id="s1", expected_token="9", id="x")
    answer = told.wait_answer("step_down", 2)[1]
    assert answer["ok"] is False and answer["error"] == "failed_precondition"
    assert answer["id"] == "x"
    assert one.holding() and one.token() == 1
    told.send(op="step_down", lease="app", expected_node_id="s1", expected_token="1", id="y")
    answer = wait_for(lambda: [l for _, l in told.answers("step_down") if l["id"] == "y"], 10,
                      "the outcome")[0]
    assert answer["ok"] is True and answer["outcome"] == "taken_back_by_this_process"
    assert answer["active_token"] == "2"


def test_sigterm_waits_for_listeners_no_longer_than_grace(tmp_path, holder):
    one = holder(tmp_path / "store")
    told = registered(one)
    at = time.time()
    one.send_signal(signal.SIGTERM)
    assert told.wait_event("lease.draining", 1)[1]["reason"] == "shutdown"
    assert one.process.wait(5) == 0
    assert GRACE - 0.05 <= time.time() - at < GRACE + 1
    assert told.events("lease.released")
