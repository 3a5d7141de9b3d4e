"""A redis that would evict the lease, or is full (CASES 8)."""

import pytest

from harness.client import get
from harness.pair import http_gate
from harness.resp import RespError
from harness.wait import wait_for


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_case_8_a_policy_that_can_evict_the_lease_is_refused_at_start(redis_server, sidecar, policy):
    one = sidecar("s1", redis_server("--maxmemory-policy", policy)).start(ready=False)
    assert one.process.wait(5) == 2
    refused = one.last("store.refused")
    assert policy in refused["msg"] and "noeviction" in refused["msg"], refused
    assert not one.events("gate.listen") and not one.events("lease.acquired")


def test_case_8_it_goes_on_with_a_warning_where_the_configuration_says_so(redis_server, sidecar):
    store = redis_server("--maxmemory-policy", "allkeys-lru")
    one = sidecar("s1", {"type": "redis", "redis.url": store.url,
                         "redis.allow_eviction": True}).start()
    one.wait_active()
    warned = one.wait_event("store.degraded", 2)
    assert warned["level"] == "warn" and "allkeys-lru" in warned["msg"]
    assert "allkeys-lru" in " ".join(one.admin("/v1/status").json()["node"]["troubles"])


@pytest.mark.parametrize("policy", ["noeviction", "volatile-lru", "volatile-ttl"])
def test_case_8_policies_that_cannot_touch_the_lease_are_fine(redis_server, sidecar, policy):
    one = sidecar("s1", redis_server("--maxmemory-policy", policy)).start()
    one.wait_active()
    assert not one.events("store.degraded")
    assert one.admin("/v1/status").json()["node"]["troubles"] == []


def fill(store):
    """Until redis says OOM."""
    with pytest.raises(RespError, match="OOM"):
        for i in range(100000):
            store.cli("SET", f"filler:{i}", b"x" * 10000)


def test_case_8_a_full_store_keeps_its_holder_and_the_standby_says_that_it_could_not_write(
        redis_server, sidecar, app):
    store = redis_server("--maxmemory", "8mb", "--maxmemory-policy", "noeviction")
    apps = (app("a"), app("b"))
    first, second = (sidecar(f"s{i + 1}", store, gates=[http_gate(apps[i])]) for i in range(2))
    first.start()
    first.wait_active()
    fill(store)
    renewals = first.metric("leasehold_lease_renewals_total", result="ok") or 0
    second.start()
    # It tries at its start, and every 30 s.
    degraded = second.wait_event("store.degraded", 5)
    assert "store_full" in degraded["msg"]
    assert "store_full" in " ".join(second.admin("/v1/status").json()["node"]["troubles"])
    assert second.metric("leasehold_troubles") == 1
    wait_for(lambda: (first.metric("leasehold_lease_renewals_total", result="ok") or 0)
             >= renewals + 6, 6, "the holder renews in a full store")
    assert first.token() == 1 and first.holding()
    assert get(first.gate()).body == b"a 1"
    assert not first.events("lease.at_risk") and not first.events("store.degraded")
    # A takeover only replaces a record that is there, so a full store does not stop it.
    first.kill9()
    second.wait_active(6)
    assert second.token() == 2
