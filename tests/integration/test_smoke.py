"""One sidecar, one request: the shortest way through everything."""

from harness.client import get


def test_a_single_sidecar_on_the_file_store_serves_with_its_token(sidecar, app, tmp_path):
    backend = app("a")
    one = sidecar("s1", tmp_path / "store",
                  gates=[{"name": "web", "type": "http", "upstream": backend.address}]).start()
    one.wait_active(5)
    answer = get(one.gate("web"))
    assert answer.status == 200
    assert answer.body == b"a 1"
    assert backend.seen[0].token == 1
    assert one.status()["holding"]
    assert one.metric("leasehold_lease_holding", lease="app") == 1
    assert one.cli("status").returncode == 0
    assert one.stop() == 0


def test_a_single_sidecar_on_a_server_serves_and_tells_of_its_end(sidecar, app, store_server,
                                                                 fault_proxy):
    store = store_server()
    proxy = fault_proxy(store)
    backend = app("a")
    one = sidecar("s1", proxy,
                  gates=[{"name": "web", "type": "http", "upstream": backend.address}]).start()
    one.wait_active(5)
    told = one.signal_reader()
    assert get(one.gate("web")).body == b"a 1"
    assert store.record()["token"] == "1"
    assert [w.command.token for w in proxy.writes()][0] == 1
    assert one.stop() == 0
    told.wait_event("lease.draining", 5)
    told.wait_event("lease.released", 5)
    assert store.record()["state"] == "released"
