"""Garbage, half-open connections and hostile servers: the sidecar goes on serving."""

import json
import socket

import pytest

from harness.client import get
from harness.hostile import HOSTILE_REPLIES, HostileRedis, garbage, reset
from harness.memory import MIB, bound
from harness.pair import http_gate
from harness.raw import Raw
from harness.wait import wait_for, watch_for


def throw(address, data):
    """Sends `data`, reads what comes, goes. Any end is right but a crash of the other side."""
    try:
        with Raw(address, timeout=0.3) as raw:
            raw.send(data)
            while raw.read_some():
                pass
    except OSError:
        pass


def test_garbage_on_every_listening_socket_disturbs_nobody(
        sidecar, app, tcp_echo, client, redis_server, things):
    store = redis_server()
    one = sidecar("s1", store, gates=[
        http_gate(app("a"), head_timeout="500ms"),
        {"name": "tcp", "type": "tcp", "upstream": tcp_echo().address},
    ]).start()
    one.wait_active()
    told = one.signal_reader()
    asking = client(one.gate(), rate=50)
    places = [one.gate(), one.gate("tcp"), one.admin_address, one.socket_path]
    for place in places:  # once, so that memory has its shape
        throw(place, garbage()["noise"])
    before = one.process.rss_bytes()
    half_open = []
    for place in places:
        for data in garbage().values():
            throw(place, data)
            raw = Raw(place)
            half_open.append(raw)
            try:
                raw.send(data[:100])
            except OSError:
                pass
            if place is not one.socket_path:  # begun, and gone with a reset
                cut = socket.create_connection(place)
                cut.sendall(data[:1])
                reset(cut)
    assert one.running()
    assert one.process.rss_bytes() - before < bound(8 * MIB), "garbage is kept"
    asking.stop()
    assert asking.bad() == [] and len(asking.oks()) > 20
    assert one.holding() and one.token() == 1
    assert one.admin("/livez").status == 200
    told.send(op="status", id=7)
    assert told.wait_answer("status", 2)[1]["id"] == 7
    assert one.cli("status").returncode == 0
    for raw in half_open:
        raw.close()
    gates = {g["name"]: g for g in one.status()["gates"]}
    wait_for(lambda: {g["connections"] for g in one.status()["gates"]} == {0}, 5,
             "what was half open is gone from the gates")
    assert set(gates) == {"web", "tcp"}
    assert one.stop() == 0


def test_bad_lines_on_the_signal_socket_get_one_error_line_each(sidecar, tmp_path):
    one = sidecar("s1", tmp_path / "store").start()
    one.wait_active()
    told = one.signal_reader()
    bad = [b"nonsense", b"{}", b"[]", b'{"op":"fly"}', b'{"op":5}', b'{"op":"drained"}',
           b'{"op":"drained","token":"x"}', b'{"op":"step_down"}', b'{"op":"register","lease":3}',
           b'{"op":"status","id":{}}', b'"\xff"']
    for line in bad:
        told.send_raw(line + b"\n")
    wait_for(lambda: len(told.events("error")) >= len(bad), 2, lambda: told.lines)
    told.send(op="status")
    told.wait_answer("status", 2)
    assert len(told.events("error")) == len(bad), "one line each"
    assert all(line["message"] for _, line in told.events("error"))
    told.send_raw(b"x" * 200000)
    wait_for(lambda: told.ended, 2, "a line without end ends the connection")
    assert json.dumps(told.lines).count("line_too_long") == 1
    assert one.holding()


def test_more_clients_than_allowed_are_turned_away_and_the_rest_is_served(sidecar, app, tmp_path):
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"), max_connections=5)],
                  more={"admin": {"max_connections": 4}, "signal": {"max_clients": 3}}).start()
    one.wait_active()
    idle = [Raw(one.gate()) for _ in range(5)]
    wait_for(lambda: one.status()["gates"][0]["connections"] == 5, 2, "five are connected")
    with Raw(one.gate()) as raw:
        assert raw.end() is not None, "the sixth is closed"
    for raw in idle:
        raw.close()
    wait_for(lambda: get(one.gate()).status == 200, 2, "there is room again")
    readers = [one.signal_reader() for _ in range(3)]
    fourth = one.signal_reader()
    wait_for(lambda: fourth.ended, 2, "the fourth is told and closed")
    assert fourth.lines[0][1]["code"] == "limit"
    assert not any(r.ended for r in readers)
    # Idle connections of the API make room: a probe always gets through.
    kept = [Raw(one.admin_address) for _ in range(6)]
    assert one.admin("/livez").status == 200
    for raw in kept:
        raw.close()


@pytest.fixture
def hostile(redis_server, things):
    server = HostileRedis(redis_server().port)
    things.callback(server.close)
    return server


def test_a_redis_that_answers_nonsense_is_never_believed_and_forgiven_when_it_heals(
        hostile, sidecar, app):
    hostile.mode = "silent"
    one = sidecar("s1", hostile, gates=[http_gate(app("a"))]).start(ready=False)
    one.wait_event("admin.listen", 10)
    before = one.process.rss_bytes()
    for mode in ["close", *HOSTILE_REPLIES]:
        hostile.mode = mode
        seen, injected = hostile.accepted, hostile.injected
        wait_for(lambda: hostile.accepted > seen or hostile.injected > injected, 6,
                 f"{mode}: it tries again")
        watch_for(lambda: one.running() and one.admin("/livez").status == 200, 0.1, one.tail)
        assert get(one.gate()).status == 503, mode
        assert not one.events("lease.acquired"), mode
    assert one.process.rss_bytes() - before < bound(8 * MIB)
    assert len(one.log_path.read_bytes()) < 256 * 1024, "it says so, but not without end"
    hostile.mode = "pass"
    one.wait_active(10)
    assert get(one.gate()).status == 200
    assert one.token() == 1


def test_nonsense_on_the_push_connection_costs_no_lease(hostile, sidecar, app, client):
    one = sidecar("s1", hostile, gates=[http_gate(app("a"))], lease={"ttl": "4s"}).start()
    one.wait_active()
    asking = client(one.gate(), rate=50)
    for name in ("noise", "huge_bulk", "oks_without_end", "wrong_types", "line_without_end"):
        hostile.mode = f"push:{name}"
        injected = hostile.injected
        wait_for(lambda: hostile.injected > injected, 8, f"{name}: it subscribes again")
        assert one.running() and one.holding(), one.tail()
    asking.stop()
    assert asking.bad() == []
    assert one.token() == 1 and one.events("lease.lost") == []
    hostile.mode = "pass"


def test_a_redis_that_turns_hostile_under_a_holder_shuts_its_gate_by_expiry(hostile, sidecar, app):
    one = sidecar("s1", hostile, gates=[http_gate(app("a"))]).start()
    one.wait_active()
    hostile.mode = "wrong_types"
    closed = one.wait_event("gate.closed", 4)
    assert get(one.gate()).status == 503
    assert closed.reason in ("expired", "renewals_failed"), closed
    hostile.mode = "pass"
    one.wait_active(6, since=closed.at)
    assert one.token() == 2
