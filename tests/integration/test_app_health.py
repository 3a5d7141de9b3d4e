"""The lease follows the application's health, without flapping (CASES 14)."""

import time

import pytest

from harness.client import get
from harness.measured import measured
from harness.overlap import assert_no_overlap
from harness.pair import Pair, http_gate
from harness.wait import wait_for, watch_for

UNREADY_AFTER = 1.0
TTL = 2.0


def check(backend, **more):
    return {"app": {"check": f"http://{backend.address}/healthz", "interval": "100ms",
                    "timeout": "200ms", "unready_after": f"{UNREADY_AFTER:.0f}s", **more}}


@pytest.fixture
def pair(sidecar, app, redis_server):
    def make(**more):
        store = redis_server()
        apps = (app("a"), app("b"))
        return Pair(*(sidecar(f"s{i + 1}", store, gates=[http_gate(apps[i])],
                              more=check(apps[i], **more)) for i in range(2)), apps)
    return make


def test_case_14_when_the_application_dies_the_standby_serves_within_unready_after(pair):
    both = pair().start()
    wait_for(lambda: both.second.status()["app_ready"], 5, "S2's application is ready")
    at = time.time()
    both.apps[0].stop()
    opened = both.second.wait_event("gate.opened", 5, since=at).at
    assert get(both.second.gate()).app == "b"
    took = opened - at
    assert took < UNREADY_AFTER + 0.5, f"{took:.3f} s"
    assert both.first.last("lease.draining").reason == "app_unready"
    assert_no_overlap(*both.apps)
    measured(f"case 14: application killed, the standby's gate open {took:.3f} s later "
             f"(unready_after {UNREADY_AFTER} s)")
    # Healed, it waits its turn.
    both.apps[0].start()
    both.first.wait_event("app.ready", 2, since=at)
    watch_for(lambda: not both.first.holding() and both.second.holding(), 0.5, "it took it back")


def test_case_14_a_standby_whose_application_never_started_does_not_compete(pair):
    both = pair()
    both.apps[1].stop()
    both.start()
    both.first.kill9()
    watch_for(lambda: not both.second.events("lease.acquired"), 2 * TTL,
              lambda: both.second.tail())
    assert "ready" in both.second.status()["not_competing"]
    assert both.second.admin("/readyz").status == 503
    assert both.second.cli("status").returncode == 0
    at = time.time()
    both.apps[1].start()
    both.second.wait_active(2, since=at)
    assert get(both.second.gate()).app == "b"


def test_case_14_an_application_broken_everywhere_costs_one_step_down_until_it_is_ready(pair):
    both = pair()
    both.apps[1].stop()
    both.start()
    both.apps[0].healthy = False
    both.first.wait_event("lease.released", UNREADY_AFTER + 2)

    def nobody_flaps():
        return (len(both.first.events("lease.draining")) == 1 and
                len(both.first.events("lease.acquired")) == 1 and
                not both.second.events("lease.acquired"))
    # Longer than hold-off (2 s) and unready_after: where flapping would show.
    watch_for(nobody_flaps, 4, lambda: both.first.tail())
    assert get(both.first.gate()).status == 503
    at = time.time()
    both.apps[0].healthy = True
    both.first.wait_active(2, since=at)
    assert both.first.token() == 2
    assert get(both.first.gate()).app == "a"
    assert both.first.metric("leasehold_lease_step_downs_total", reason="app_unready") == 1


def test_one_slow_or_failed_check_costs_nothing(pair):
    both = pair().start()
    both.apps[0].healthy = False
    both.first.wait_event("app.unready", 2)
    both.apps[0].healthy = True
    both.first.wait_event("app.ready", 1)
    watch_for(lambda: both.first.holding(), UNREADY_AFTER + 0.3, lambda: both.first.tail())
    assert both.first.events("lease.draining") == []


def test_on_unready_keep_holds_the_lease_and_answers_502(pair):
    both = pair(on_unready="keep").start()
    both.apps[0].stop()
    both.first.wait_event("app.unready", 2)
    watch_for(lambda: both.first.holding(), UNREADY_AFTER + 0.5, lambda: both.first.tail())
    assert get(both.first.gate()).status == 502
    assert both.first.admin("/readyz").status == 200, "ready is who holds"
