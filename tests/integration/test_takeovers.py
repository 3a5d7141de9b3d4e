"""How long nobody serves: after a crash, in a planned move (CASES 6).

Limits of milliseconds are asserted on the median of five, because the scheduler of a busy build
machine can hold any one of them up; all five are printed.
"""

import statistics
import time

import pytest

from harness.measured import measured
from harness.overlap import assert_no_overlap
from harness.pair import Pair, http_gate
from harness.wait import wait_for

TTL = 3.0
POLL = 0.3  # derived from 3 s


def hears_of_changes(store):
    """A store that pushes; on another a standby sees a change only when it asks, up to POLL later."""
    return store.protocol.pushes


@pytest.fixture
def pair(sidecar, app):
    def make(store, **lease):
        apps = (app("a"), app("b"))
        return Pair(*(sidecar(f"s{i + 1}", store, gates=[http_gate(apps[i])],
                              lease={"ttl": "3s", **lease}) for i in range(2)), apps).start()
    return make


def test_case_6_a_warm_standby_takes_over_one_ttl_after_the_last_renewal(store_server, pair):
    store = store_server()
    limit = TTL * 1.05 + 0.2 if hears_of_changes(store) else TTL + POLL + 0.3
    both = pair(store)
    monitor = store.monitor()
    wait_for(lambda: len(monitor.lease_writes()) >= 2, 5, "two renewals in the standby's sight")
    killed = both.first.kill9()
    opened = both.second.wait_event("gate.opened", 2 * TTL, since=killed)
    last_renewal = [t for t, c in monitor.lease_writes() if c.token == 1][-1]
    took = opened.at - last_renewal
    assert TTL * 0.999 < took + 0.001, f"took over {took:.3f} s after a renewal of {TTL} s"
    assert took < limit, f"{took:.3f} s"
    assert both.second.token() == 2
    measured(f"kill -9, ttl {TTL} s: the standby's gate opened {took:.3f} s after the last "
             f"renewal (limit {limit:.2f} s)")


def test_case_6_a_cold_standby_takes_over_one_ttl_after_its_own_start(store_server, pair):
    store = store_server()
    both = pair(store)
    both.second.kill9()
    both.first.kill9()
    both.second.start()
    acquired = both.second.wait_active(2 * TTL)
    took = acquired.at - both.second.started_at
    assert took > TTL * 0.999, "a cold standby must see the record unchanged for one TTL itself"
    assert took < TTL + POLL + 0.3
    measured(f"cold standby, ttl {TTL} s: held {took:.3f} s after its start")


def test_kill_9_on_the_file_store_opens_the_standbys_gate_within_100_ms(tmp_path, pair):
    both = pair(tmp_path / "store")
    took = []
    for token in range(2, 7):
        killed = both.first.kill9()
        opened = both.second.wait_event("gate.opened", 2 * TTL, since=killed)
        took.append(opened.at - killed)
        assert both.second.token() == token
        both.first, both.second = both.second, both.first
        both.second.start()
        both.wait_warm()
    measured("kill -9 on the file store: the standby's gate opened after "
             + ", ".join(f"{t * 1000:.0f}" for t in took) + " ms (limit 100 ms)")
    assert statistics.median(took) < 0.100


def test_a_planned_step_down_opens_the_standbys_gate_within_25_ms_of_the_release_or_one_poll_later(
        store_server, pair, client):
    store = store_server()
    limit = 0.025 if hears_of_changes(store) else POLL + 0.1
    both = pair(store)
    monitor = store.monitor()
    requests = [client(s.gate(), rate=50) for s in (both.first, both.second)]
    took, gaps = [], []
    for token in range(2, 7):
        wait_for(lambda: requests[token % 2].oks()[-1:] and
                 requests[token % 2].oks()[-1].token == token - 1, 5, "served under the new token")
        answer = both.first.step_down().json()
        assert answer["outcome"] == "taken_over_by_another_process", answer
        assert answer["active_token"] == str(token)
        asked = both.first.last("lease.draining").at
        opened = both.second.wait_event("gate.opened", 2, since=asked)
        # The instant the store executed it: earlier than the releaser's own line.
        released = [t for t, c in monitor.lease_writes() if c.state == "released"][-1]
        took.append(opened.at - released)
        gaps.append(opened.at - both.first.last("gate.closed").at)
        both.first, both.second = both.second, both.first
        # The former holder's hold-off ends before it is the standby that is measured.
        both.second.wait_state("standby", 5)
        both.wait_warm()
    for c in requests:
        c.close()
    assert [r for c in requests for r in c.responses if r.error] == []
    assert [t[0] for t in assert_no_overlap(*both.apps)] == [1, 2, 3, 4, 5, 6]
    measured("planned step-down: the standby's gate opened "
             + ", ".join(f"{t * 1000:.0f}" for t in took) + f" ms after the release (limit "
             f"{limit * 1000:.0f} ms); nobody open for "
             + ", ".join(f"{t * 1000:.0f}" for t in gaps) + " ms")
    assert statistics.median(took) < limit


def test_after_sigterm_the_standby_has_taken_over_before_the_old_process_is_gone_for_long(
        store_server, pair):
    both = pair(store_server())
    asked = time.time()
    assert both.first.stop() == 0
    gone = time.time()
    opened = both.second.wait_event("gate.opened", 2, since=asked)
    assert opened.at - asked < 0.5
    assert gone - asked < 1.0
    assert both.second.token() == 2
