"""Stores that forget (CASES 8)."""

from harness.client import get
from harness.pair import http_gate
from harness.wait import wait_for


def test_case_8_a_record_deleted_under_its_holder_is_a_loss_and_a_new_term(
        store_server, sidecar, app):
    store = store_server()
    one = sidecar("s1", store, gates=[http_gate(app("a"))]).start()
    one.wait_active()
    assert get(one.gate()).body == b"a 1"
    store.delete_record()
    lost = one.wait_event("lease.lost", 2)
    assert lost.reason == "absent" and lost.token == 1
    again = one.wait_event("lease.acquired", 5, since=lost.at, token=2)
    assert again.at >= lost.at
    assert get(one.gate()).body == b"a 2"
    assert store.record()["token"] == "2"
    assert one.metric("leasehold_lease_losses_total", reason="absent") == 1


def test_case_8_a_token_lower_than_ever_seen_is_told_and_never_followed(
        store_server, sidecar, app):
    store = store_server()
    store.write_record(format=1, lease="app", node_id="old", process_id="d" * 32, token=41, beat=7,
                       ttl_ms=2000, state="released", acquired_at_unix_ms=0)
    one = sidecar("s1", store, gates=[http_gate(app("a"))]).start()
    one.wait_active()
    assert one.token() == 42
    # An older state of the store comes back: a replica promoted, a backup restored.
    store.write_record(node_id="old", process_id="d" * 32, token=7, beat=3, state="released")
    told = one.wait_event("lease.token_regression", 5)
    assert told["level"] == "warn"
    wait_for(lambda: one.token() == 43 and one.holding(), 8, "holds above the highest token seen")
    assert get(one.gate()).body == b"a 43"
    assert one.metric("leasehold_lease_token_regressions_total", lease="app") >= 1
