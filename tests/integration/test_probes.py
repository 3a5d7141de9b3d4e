"""Probes: role x store x endpoint -> code (CASES 17)."""

import signal

import pytest

from harness.client import get
from harness.pair import Pair, http_gate
from harness.raw import Raw
from harness.wait import wait_for, watch_for

TTL = 2.0
ENDPOINTS = ("/livez", "/readyz", "/leaderz", "/standbyz")
#                      livez readyz leaderz standbyz
HOLDER =              (200, 200, 200, 503)
STANDBY =             (200, 200, 503, 503)  # a cold one: only hot ones answer 200 at /standbyz
NOT_READY =           (200, 503, 503, 503)


def codes(one, query=""):
    return tuple(one.admin(path + query).status for path in ENDPOINTS)


def wait_codes(one, expected, seconds, what):
    wait_for(lambda: codes(one) == expected, seconds,
             lambda: f"{what}: {dict(zip(ENDPOINTS, codes(one)))}, not {expected}; "
             f"log:\n{one.tail()}")


@pytest.fixture
def pair(sidecar, app, redis_server):
    store = redis_server()
    apps = (app("a"), app("b"))
    checks = [{"app": {"check": f"http://{a.address}/healthz", "interval": "100ms",
                       "timeout": "200ms", "unready_after": "20s"}} for a in apps]
    both = Pair(*(sidecar(f"s{i + 1}", store, gates=[http_gate(apps[i])], more=checks[i])
                  for i in range(2)), apps)
    both.store = store
    return both


def test_case_17_holder_and_standby_with_the_store_up_frozen_and_back(pair):
    pair.start()
    wait_codes(pair.first, HOLDER, 2, "the holder, store up")
    wait_codes(pair.second, STANDBY, 2, "a standby, store up")
    # A short outage: nothing changes.
    pair.store.freeze()
    watch_for(lambda: codes(pair.first) == HOLDER, 0.5, "the holder, store frozen a short while")
    assert codes(pair.second) == STANDBY, "a standby, store frozen a short while"
    # Longer than one TTL: nobody is ready, everybody lives, and says why.
    wait_codes(pair.first, NOT_READY, TTL + 1, "who held, store frozen for a TTL")
    wait_codes(pair.second, NOT_READY, TTL + 1, "a standby, store frozen for a TTL")
    problem = pair.second.admin("/readyz").json()
    assert "the store has not answered within one TTL" in problem["detail"], problem
    pair.store.cont()
    wait_for(lambda: sorted(codes(s) for s in (pair.first, pair.second)) ==
             sorted([HOLDER, STANDBY]), 2 * TTL + 2, "one holds again, the other is ready again")


def test_case_17_a_standby_is_ready_only_with_its_application(pair):
    pair.start()
    wait_codes(pair.second, STANDBY, 2, "a standby")
    pair.apps[1].healthy = False
    wait_codes(pair.second, NOT_READY, 2, "a standby with an unready application")
    assert "the application is not ready" in pair.second.admin("/readyz").json()["detail"]
    pair.apps[0].healthy = False
    pair.first.wait_event("app.unready", 2)
    assert codes(pair.first) == HOLDER, "a holder stays ready: an unready pod would get no traffic"


def test_case_17_before_the_store_ever_answered(pair):
    pair.store.kill()
    pair.first.start(ready=False)
    pair.first.wait_event("admin.listen", 5)
    assert codes(pair.first)[0] == 200, "alive: a restart would not repair the store"
    wait_codes(pair.first, NOT_READY, TTL + 1, "no store since the start")
    pair.store.start()
    wait_codes(pair.first, HOLDER, 10, "the store came")


def test_case_17_draining_released_and_shutting_down(pair):
    pair.first.start().wait_active()
    wait_codes(pair.first, HOLDER, 2, "the holder")
    with Raw(pair.first.gate()) as raw:
        raw.send(b"GET /slow?ms=600 HTTP/1.1\r\nHost: app\r\n\r\n")
        wait_for(lambda: pair.apps[0].seen, 2, "a request is in flight")
        pair.first.step_down(wait=False)
        pair.first.wait_event("lease.draining", 1)
        assert codes(pair.first) == HOLDER, "it holds until it has released"
        assert raw.response().status == 200
    pair.first.wait_event("lease.released", 2)
    assert codes(pair.first) == STANDBY, "in the hold-off"
    since = pair.first.last("lease.released").at
    pair.first.wait_active(5, since=since)
    with Raw(pair.first.gate()) as raw:
        raw.send(b"GET /slow?ms=600 HTTP/1.1\r\nHost: app\r\n\r\n")
        wait_for(lambda: len(pair.apps[0].seen) == 2, 2, "a request is in flight")
        pair.first.send_signal(signal.SIGTERM)
        pair.first.wait_event("lease.draining", 1, since=since)
        assert codes(pair.first) == HOLDER, "SIGTERM, and still at work"
        assert raw.response().status == 200
    assert pair.first.process.wait(5) == 0


def test_case_17_several_leases(sidecar, tmp_path):
    def leases(*names):
        return [{"name": n, "ttl": "2s", "step_down_grace": "1s", "step_down_hold_off": "2s"}
                for n in names]
    other = sidecar("s0", tmp_path / "store", leases=leases("b")).start()
    other.wait_active(lease="b")
    one = sidecar("s1", tmp_path / "store", leases=leases("a", "b")).start()
    one.wait_active(lease="a")
    wait_for(lambda: one.status("b")["holder"], 2, "it sees b's holder")
    assert codes(one) == STANDBY, "it does not hold all of them, but is ready"
    assert codes(one, "?lease=a") == HOLDER
    assert codes(one, "?lease=b") == STANDBY
    assert codes(one, "?lease=nope") == (200, 404, 404, 404)
    assert codes(other, "?lease=b") == HOLDER
    body = one.admin("/leaderz").json()
    assert body["status"] == 503 and '"b"' in body["detail"] and '"a"' not in body["detail"]
    other.stop()
    one.wait_active(5, lease="b")
    assert codes(one) == HOLDER, "now it holds all of them"


def test_case_17_probes_answer_head_and_refuse_other_methods(sidecar, tmp_path):
    one = sidecar("s1", tmp_path / "store").start()
    one.wait_active()
    for path in ENDPOINTS[:3]:
        head = one.admin(path, "HEAD")
        assert head.status == 200 and head.body == b""
        assert one.admin(path, "POST").status == 405
        assert one.admin(path).headers["Cache-Control"] == "no-store"
    # A kubelet's probe has no name for us, and an HTTP/1.0 one has none at all.
    with Raw(one.admin_address) as raw:
        raw.send(b"GET /livez HTTP/1.0\r\n\r\n")
        assert raw.response().status == 200
    assert get(one.admin_address, "/v1/status").status == 200
