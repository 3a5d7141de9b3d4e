"""The store freezes, is cut off, fills: who serves, and for how long (CASES 1, 5, 10, 15)."""

import time

import pytest

from harness.fault_proxy import SWALLOW, is_renewal
from harness.measured import measured
from harness.overlap import assert_no_overlap, assert_responses_do_not_overlap
from harness.pair import Pair, http_gate
from harness.tcp import TcpPinger
from harness.wait import wait_for, watch_for

# An admitted request reaches the application's notes so much later on a busy two-core machine; what
# a client sent needs no slack, because it was sent before it was admitted.
SLACK = 0.25


@pytest.fixture
def pair(sidecar, app):
    """pair(first's store, second's store, **lease options) -> Pair, started."""
    def make(first, second, lease, gates=http_gate):
        apps = (app("a"), app("b"))
        return Pair(sidecar("s1", first, gates=[gates(apps[0])], lease=lease),
                    sidecar("s2", second, gates=[gates(apps[1])], lease=lease), apps).start()
    return make


def test_case_1_a_holder_whose_store_froze_serves_no_longer_than_its_permit(
        store_server, pair, client):
    ttl, margin = 3.0, 0.06
    store = store_server()
    both = pair(store, store, {"ttl": "3s"})
    monitor = store.monitor()
    requests = client(both.first.gate(), rate=100)
    other_requests = client(both.second.gate(), rate=20)
    wait_for(lambda: len(monitor.lease_writes()) >= 2 and len(requests.oks()) > 20, 5,
             "two renewals and some answers")
    store.freeze()
    both.first.wait_event("lease.lost", 2 * ttl)
    last_renewal_done = monitor.lease_writes()[-1][0]
    # The last renewal was sent before it was executed, so its permit ends before this.
    permit_end = last_renewal_done + ttl - margin
    assert max(r.sent for r in requests.oks()) <= permit_end
    last_seen = both.apps[0].seen[-1].at
    assert last_seen <= permit_end + SLACK, f"served {last_seen - permit_end:.3f} s past its permit"
    # Well used too: a permit thrown away early would be an outage of its own.
    assert last_seen >= last_renewal_done + ttl * 3 / 4 - SLACK
    assert both.holders() == []

    thawed = time.time()
    store.cont()
    wait_for(both.holders, ttl + 1, "somebody holds again")
    new = both.holders()[0]
    wait_for(lambda: [r for c in (requests, other_requests) for r in c.oks() if r.sent > thawed],
             2, "somebody serves again")
    assert new.token() == 2
    requests.close()
    other_requests.close()
    terms = assert_no_overlap(*both.apps)
    assert [t[0] for t in terms] == [1, 2]
    assert_responses_do_not_overlap(requests, other_requests)
    measured(f"case 1: last request of the old term {permit_end - last_seen:+.3f} s before its "
             f"permit's end; a holder {new.last('lease.acquired').at - thawed:.3f} s after the thaw")


def test_case_1_a_cut_off_holder_has_stopped_before_the_standby_serves(
        store_server, fault_proxy, pair, client):
    ttl, margin = 3.0, 0.06
    store = store_server()
    proxy = fault_proxy(store)
    both = pair(proxy, store, {"ttl": "3s"})
    requests = client(both.first.gate(), rate=100)
    other_requests = client(both.second.gate(), rate=100)
    cut = proxy.on(is_renewal, SWALLOW, before=proxy.black_hole)
    wait_for(lambda: cut.hits == 1, 3, "the store is cut off at a renewal")
    confirmed = [w for w in proxy.writes() if w.answer_passed][-1]
    permit_end = confirmed.at + ttl - margin
    both.second.wait_active(2 * ttl)
    wait_for(lambda: both.apps[1].seen, 2, "the standby's application serves")
    requests.close()
    other_requests.close()
    assert max(r.sent for r in requests.oks()) <= permit_end
    last, first = both.apps[0].seen[-1].at, both.apps[1].seen[0].at
    assert last <= permit_end + SLACK, f"served {last - permit_end:.3f} s past its permit"
    assert last < first
    assert [t[0] for t in assert_no_overlap(*both.apps)] == [1, 2]
    assert_responses_do_not_overlap(requests, other_requests)
    assert not both.first.holding()
    measured(f"case 1: cut off; {first - last:.3f} s between the old holder's last request and the "
             "new one's first")


def test_case_5_a_holder_without_its_store_tells_before_the_lease_ends(
        store_server, fault_proxy, sidecar, app):
    ttl = 3.0
    proxy = fault_proxy(store_server())
    one = sidecar("s1", proxy, gates=[http_gate(app("a"))], lease={"ttl": "3s"})
    cut = proxy.on(is_renewal, SWALLOW, before=proxy.black_hole)
    one.start()
    one.wait_active()
    told = one.signal_reader()
    wait_for(lambda: cut.hits == 1, 3, "the first renewal is swallowed")
    acquisition = proxy.writes()[0]
    risk_at, _ = told.wait_event("lease.at_risk", ttl)
    drain_at, drain = told.wait_event("lease.draining", ttl)
    lost_at, lost = told.wait_event("lease.lost", ttl)
    expiry = acquisition.at + ttl
    assert risk_at < drain_at < lost_at < expiry
    assert drain["reason"] == "renewals_failed"
    assert 0 < int(drain["grace_ms"]) <= (expiry - drain_at) * 1000 + 5
    assert lost["reason"] == "expired"
    assert one.metric("leasehold_lease_losses_total", reason="expired") == 1
    measured(f"case 5: at risk {expiry - risk_at:.2f} s, draining {expiry - drain_at:.2f} s, "
             f"lost {expiry - lost_at:.3f} s before the lease's end")


def test_case_10_a_short_store_outage_cuts_and_refuses_nobody(
        store_server, sidecar, app, tcp_echo, client, things):
    store = store_server()
    echo = tcp_echo()
    one = sidecar("s1", store, lease={"ttl": "10s"},
                  gates=[http_gate(app("a")),
                         {"name": "raw", "type": "tcp", "upstream": echo.address}]).start()
    one.wait_active()
    http = [client(one.gate("web"), rate=4) for _ in range(50)]
    tcp = [TcpPinger(one.gate("raw"), rate=10) for _ in range(10)]
    for pinger in tcp:
        things.callback(pinger.close)
    wait_for(lambda: all(c.oks() for c in http) and all(p.answers for p in tcp), 10,
             "every connection has been served once")
    store.freeze()
    frozen = time.time()
    watch_for(lambda: one.holding(), 4.0, "still holding")
    store.cont()
    thawed = time.time()
    wait_for(lambda: one.status()["failed_rounds"] == 0 and one.status()["store_ok"] and
             one.status()["expires_in_ms"] > 8000, 5, "renewed after the outage")
    wait_for(lambda: all(c.responses[-1].sent > thawed for c in http), 5, "one more round of requests")
    for c in http:
        c.close()
    for p in tcp:
        p.close()
    assert [r for c in http for r in c.bad()] == []
    assert [p.error for p in tcp if p.error] == []
    during = sum(1 for c in http for r in c.responses if frozen <= r.sent <= thawed)
    assert during > 400
    assert echo.accepted == 10
    assert not one.events("lease.draining") and not one.events("lease.lost")
    assert one.token() == 1


def test_case_15_after_each_of_20_outages_somebody_holds_and_the_gauges_tell_the_truth(
        store_server, pair):
    ttl, slack = 0.7, 0.6
    store = store_server()
    both = pair(store, store, {"ttl": "700ms", "step_down_grace": "100ms"})
    pids = (both.first.pid, both.second.pid)
    sidecars = (both.first, both.second)

    def gauges():
        return sum(s.metric("leasehold_lease_holding", lease="app") for s in sidecars)
    slowest, token = 0.0, 1
    for outage in range(20):
        assert gauges() == 1
        store.freeze()
        wait_for(lambda: gauges() == 0, ttl + slack, f"outage {outage}: no gauge says holding")
        store.cont()
        thawed = time.time()
        wait_for(both.holders, ttl + slack,
                 lambda: f"outage {outage}: a holder; {[s.tail(12) for s in sidecars]}")
        slowest = max(slowest, time.time() - thawed)
        holder = both.holders()[0]
        assert holder.token() > token
        token = holder.token()
        wait_for(lambda: holder.metric("leasehold_lease_token", lease="app") == token, 1, "the token")
    assert (both.first.pid, both.second.pid) == pids
    assert both.first.running() and both.second.running()
    measured(f"case 15: 20 outages, at most {slowest:.3f} s without a holder after the thaw "
             f"(ttl {ttl} s)")
