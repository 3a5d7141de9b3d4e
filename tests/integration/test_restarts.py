"""With node.state_dir a restart costs no TTL (DESIGN 2.6): the lock that a process held there is the
proof that it is dead."""

import shutil
import time

import pytest

from harness.client import get
from harness.measured import measured
from harness.pair import http_gate
from harness.wait import watch_for

TTL = 3.0


@pytest.fixture
def store(store_server):
    return store_server()


@pytest.fixture
def one(sidecar, app, store, tmp_path):
    return sidecar("s1", store, gates=[http_gate(app("a"))], lease={"ttl": "3s"},
                   more={"node": {"state_dir": tmp_path / "state"}})


def test_a_successor_of_a_killed_process_takes_its_lease_at_once_with_a_new_token(one):
    one.start().wait_active()
    took = []
    for token in (2, 3, 4):
        one.kill9()
        at = time.time()
        took.append(one.start().wait_active(TTL).at - at)
        assert one.token() == token
        assert get(one.gate()).body == b"a %d" % token
    assert sorted(took)[1] < 0.5, took
    measured(f"restart with a state_dir, ttl {TTL} s: held again after "
             f"{', '.join(f'{t * 1000:.0f}' for t in took)} ms")


def test_without_the_former_process_proof_the_successor_waits_one_ttl(one, tmp_path):
    one.start().wait_active()
    one.kill9()
    shutil.rmtree(tmp_path / "state")
    one.start()
    watch_for(lambda: not one.events("lease.acquired"), TTL * 0.5, one.tail)
    acquired = one.wait_active(TTL + 1)
    assert acquired.at - one.started_at > TTL * 0.999
    assert one.token() == 2


def test_a_lease_that_another_took_meanwhile_is_not_taken_from_it(
        one, sidecar, app, store):
    one.start().wait_active()
    two = sidecar("s2", store, gates=[http_gate(app("b"))], lease={"ttl": "3s"}).start()
    one.kill9()
    two.wait_active(TTL + 2)
    one.start()
    watch_for(lambda: two.holding() and not one.events("lease.acquired"), 1.0, one.tail)
    assert two.token() == 2
