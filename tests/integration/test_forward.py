"""Http gates that forward: what a request to a standby meets (CASES 20), secrets, and holders that
are silent. test_forged_records.py: records that are not true."""

import os
import random
import re
import socket
import threading
import time
import zlib

import pytest

from harness.client import get
from harness.fast_app import FastApp
from harness.forwarding import (HOLD, LAG, LEASE, PATIENCE, TTL, Asker, forwarding, peer_port,
                                sentence)
from harness.forwarding import pair  # noqa: F401 (a fixture)
from harness.measured import measured
from harness.memory import bound
from harness.overlap import assert_no_overlap
from harness.pair import Pair
from harness.raw import Raw, ScriptApp, websocket
from harness.wait import wait_for
from harness.wire import Wire
from test_costs import wrk

MIB = 1024 * 1024


# ---- what it is for ----

def test_case_20_a_request_to_the_standby_is_answered_by_the_holders_application_with_one_via(pair):
    both = pair()
    answer = get(both.second.gate(), "/x", method="POST", body=b"some words")
    direct = get(both.first.gate(), "/x", method="POST", body=b"some words")
    assert answer.status == 200 and answer.body == b"a 1"
    assert both.apps[1].seen == []
    forwarded, straight = both.apps[0].seen
    assert forwarded.body == b"some words"
    assert forwarded.headers["Via"] == straight.headers["Via"], "one Via, not one a sidecar"
    assert "," not in forwarded.headers["Via"]
    assert answer.headers.get("Via") == direct.headers.get("Via")
    assert not [name for name in {**answer.headers, **forwarded.headers} if name == "Lease-Peer"]


def streamed(raw, head, size):
    """Sends `size` bytes behind a head and reads as many back; their checksums."""
    block = os.urandom(MIB)
    sent = got = received = 0
    raw.send(head)

    def send():
        nonlocal sent
        for _ in range(size // MIB):
            raw.socket.sendall(block)
            sent = zlib.crc32(block, sent)
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    status, headers = raw.head()
    assert status == 200, headers
    assert int(dict(headers)["Content-Length"]) == size
    data = raw.read_some()
    while data:
        got, received = zlib.crc32(data, got), received + len(data)
        data = raw.read_some() if received < size else b""
    sender.join(5)
    assert received == size
    return sent, got


def test_case_20_50_mb_up_and_down_and_an_upgrade_pass(pair, things):
    apps = (ScriptApp(), ScriptApp())
    for each in apps:
        things.callback(each.close)
    both = pair(apps=apps)
    before = [s.process.rss_bytes() for s in (both.first, both.second)]
    size = 50 * MIB
    with Raw(both.second.gate(), timeout=60) as raw:
        begin = time.time()
        sent, got = streamed(raw, f"POST /echo HTTP/1.1\r\nHost: app\r\nContent-Length: {size}\r\n\r\n",
                             size)
    assert sent == got
    took = time.time() - begin
    growth = [s.process.rss_bytes() - b for s, b in zip((both.first, both.second), before)]
    measured(f"50 MB up and down through a standby: {took:.1f} s, memory "
             f"{growth[1] / MIB:+.1f} MiB there, {growth[0] / MIB:+.1f} MiB at the holder")
    assert max(growth) < bound(4 * MIB)
    with websocket(both.second.gate()) as tunnel:
        assert tunnel.send(b"through two gates").exactly(17) == b"through two gates"
    assert apps[1].heads == []


def test_what_http_can_do_at_the_holder_it_can_do_at_the_standby(pair, things):
    apps = (ScriptApp(), ScriptApp())
    for each in apps:
        things.callback(each.close)
    both = pair(apps=apps)
    with Raw(both.second.gate()) as raw:
        head = "Host: app\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        raw.send(f"POST /continue HTTP/1.1\r\n{head}")
        assert raw.head()[0] == 100, "the application asks for the body"
        answer = raw.send("words").response()
        assert (answer.status, answer.body) == (200, b"words")
        answer = raw.send("GET /trailers HTTP/1.1\r\nHost: app\r\n\r\n").response()
        assert answer.body == b"abc" and ("X-Took", "1") in answer.trailers
        assert "Lease-Peer" not in [name for name, _ in answer.headers]
        raw.send("".join(f"POST /echo{i} HTTP/1.1\r\nHost: app\r\nTransfer-Encoding: chunked\r\n\r\n"
                         f"3\r\nno{i}\r\n0\r\nX-Sum: {i}\r\n\r\n" for i in range(3)))
        assert [raw.response().body for _ in range(3)] == [b"no0", b"no1", b"no2"], "in order"
        assert apps[0].trailers[-1] == ["X-Sum: 2"]
    with Raw(both.second.gate()) as raw:
        answer = raw.send(f"POST /early HTTP/1.1\r\n{head}").response()
        assert (answer.status, answer.body, answer.interim) == (401, b"who?", [])
    assert apps[1].heads == []


def test_the_application_learns_the_clients_address_either_way_and_no_forged_lease_headers(pair):
    both = pair()
    for sidecar in (both.first, both.second):
        raw = socket.socket()
        raw.bind(("127.0.0.2", 0))
        raw.connect(sidecar.gate())
        raw.sendall(b"GET /who HTTP/1.1\r\nHost: app\r\nConnection: close\r\n"
                    b"Lease-Fencing-Token: 999\r\nLease-Holder: me\r\nLease_Sequence: 7\r\n\r\n")
        assert raw.recv(65536).startswith(b"HTTP/1.1 200")
        raw.close()
    straight, forwarded = both.apps[0].seen
    for seen in (straight, forwarded):
        assert seen.headers["X-Forwarded-For"] == "127.0.0.2", seen.headers
        assert seen.token == 1
        assert "me" != seen.headers["Lease-Holder"]
        assert [n for n in seen.headers if n.lower().replace("_", "-") == "lease-sequence"] == \
            ["Lease-Sequence"]
    assert straight.headers["Lease-Holder"] == forwarded.headers["Lease-Holder"]


def test_nobody_else_is_served_at_the_peer_listener_nor_told_where_to_go(pair):
    both = pair()
    for head in ("", "Lease-Peer: 1 gate=web to=x from=y\r\n", "Lease-Peer: nonsense\r\n"):
        with Raw(("127.0.0.1", peer_port(both.first))) as raw:
            answer = raw.send(f"POST / HTTP/1.1\r\nHost: app\r\n{head}Content-Length: 2\r\n\r\nhi"
                              ).response()
            assert answer.status in (403, 503), answer
    with Raw(both.first.gate()) as raw:
        raw.send("GET / HTTP/1.1\r\nHost: app\r\nLease-Peer: 1 gate=web to=x from=y\r\n\r\n")
        assert raw.response().status in (400, 403, 508), "a client that plays a sidecar"
    assert both.apps[0].seen == [] and both.apps[1].seen == []


def test_a_dead_application_is_502_either_way_and_nobody_asks_another(pair):
    both = pair()
    both.apps[0].stop()
    for sidecar in (both.first, both.second):
        for method, body in (("GET", None), ("POST", b"x")):
            answer = get(sidecar.gate(), method=method, body=body)
            assert answer.status == 502 and answer.received - answer.sent < LAG, answer
    both.apps[0].start()
    assert get(both.second.gate(), method="POST", body=b"x").body == b"a 1"
    assert both.apps[1].seen == []


LEAVING = ["GET /slow?ms=50 HTTP/1.1\r\nHost: app\r\n\r\n",
           "GET /stream?bytes=1000000&ms=100 HTTP/1.1\r\nHost: app\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: app\r\nContent-Length: 100000\r\n\r\nand no more",
           "POST / HTTP/1.1\r\nHost: app\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
           "POST / HTTP/1.1\r\nHost: app\r\nContent-Length: 0\r\n\r\n",
           "GET / HT"]


def test_clients_that_leave_at_any_moment_leave_nothing_behind(pair):
    both = pair()
    chance = random.Random(1)
    for number in range(120):
        raw = Raw((both.first, both.second)[number // 6 % 2].gate())
        raw.send(LEAVING[number % 6])
        time.sleep(chance.random() * 0.005)  # any moment
        if chance.random() < 0.5:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        raw.close()
    for sidecar in (both.first, both.second):
        wait_for(lambda: all(sidecar.status()["gates"][0][what] == 0
                             for what in ("in_flight", "held", "forwarding")), 5,
                 lambda: f"{sidecar.node} is at rest: {sidecar.status()['gates']}")
    began = time.time()
    assert both.first.step_down().json()["outcome"] == "taken_over_by_another_process"
    assert time.time() - began < LAG, "a move waits for nobody who is gone"
    assert get(both.first.gate()).body == b"b 2"


# ---- secrets ----

def test_a_wrong_peer_secret_is_502_with_the_sentence_and_logged_on_both_sides(
        pair, tmp_path, sidecar, app, redis_server):
    files = []
    for name, word in (("right", "correct horse"), ("wrong", "battery staple")):
        path = tmp_path / name
        path.write_text(word + "\n")
        path.chmod(0o600)
        files.append(str(path))
    good = pair(peer_secret_file=files[0])
    assert get(good.second.gate()).body == b"a 1"
    store, apps = redis_server(name="redis2"), (app("c"), app("d"))
    both = Pair(*(sidecar(f"t{i + 1}", store, lease=LEASE, gates=[
        forwarding(apps[i], peer_secret_file=files[i])]) for i in range(2)), apps).start()
    at = time.time()
    answer = wait_for(lambda: (a := get(both.second.gate(), method="POST", body=b"x")).status != 503
                      and a, 5, "an answer")
    assert answer.status == 502 and answer.received - answer.sent < LAG, answer
    assert "peer_secret_file" in sentence(answer)
    told = both.first.wait_event("gate.peer_refused", 2, since=at - 1)
    assert told["level"] == "warn" and "peer_secret_file" in told["error"], told
    told = both.second.wait_event("gate.peer", 2, since=at - 1)
    assert told["level"] == "warn" and "refuses" in told["error"], told
    assert apps[0].seen == [] and apps[1].seen == []


# ---- holders that are silent ----

def test_requests_sent_to_a_stopped_holder_are_answered_after_the_takeover_and_none_twice(pair):
    both = pair(hold_timeout="8s")
    begun = Asker(both.second.gate(), "/slow?ms=700&n=begun", "POST", b"x", timeout=30)
    wait_for(lambda: both.apps[0].seen, 2, "it reached the application")
    both.first.freeze()
    askers = [Asker(both.second.gate(), f"/{i}", *(("POST", b"x") if i % 2 else ()), timeout=30)
              for i in range(10)]
    answers = [each.wait(30) for each in askers]
    assert [a.status for a in answers] == [200] * 10, answers
    assert {a.body for a in answers} == {b"b 2"}
    assert begun.wait(30).status in (502, 504), "executed, and nobody can say how it ended"
    both.first.cont()
    both.first.wait_event("lease.lost", 5)
    assert get(both.first.gate(), "/later").body == b"b 2"
    paths = [s.path for each in both.apps for s in each.seen]
    assert sorted(paths) == sorted(set(paths)), "one was executed twice"
    assert [s.path for s in both.apps[0].seen] == ["/slow?ms=700&n=begun"]
    assert_no_overlap(*both.apps)
    measured("holder stopped, ttl 2 s: forwarded requests were answered after "
             f"{max(a.received - a.sent for a in answers):.2f} s at most")


@pytest.fixture
def wired(sidecar, app, redis_server, things):
    """The holder's gate is reached over a wire: (Pair, Wire)."""
    def make(**more):
        store, apps, wire = redis_server(), (app("a"), app("b")), Wire()
        things.callback(wire.close)
        first = sidecar("s1", store, lease=LEASE, gates=[
            forwarding(apps[0], advertise=wire.address, **more)]).start()
        wire.target = ("127.0.0.1", peer_port(first))
        first.wait_active()
        second = sidecar("s2", store, lease=LEASE, gates=[forwarding(apps[1], **more)]).start()
        both = Pair(first, second, apps).wait_warm()
        wait_for(lambda: get(second.gate(), "/warm").ok, 5, "the standby forwards")
        apps[0].seen.clear()
        return both, wire
    return make


def test_a_dead_host_on_the_way_costs_what_is_sent_no_more_than_the_takeover(wired):
    both, wire = wired(hold_timeout="8s")
    wire.swallow()
    killed = both.first.kill9()
    askers = [Asker(both.second.gate(), f"/{i}", *(("POST", b"x") if i % 2 else ()), timeout=30)
              for i in range(10)]
    answers = [each.wait(30) for each in askers]
    assert [a.status for a in answers] == [200] * 10, answers
    assert {a.body for a in answers} == {b"b 2"}
    paths = [s.path for s in both.apps[1].seen]
    assert sorted(paths) == sorted(set(paths))
    longest = max(a.received for a in answers) - killed
    measured(f"holder's host dead without a word, ttl {TTL} s: answered {longest:.2f} s later")
    assert longest < max(TTL, PATIENCE) + 1 + LAG


def test_a_way_to_the_holder_that_swallows_everything_is_503_in_bounded_time_and_heals(wired):
    both, wire = wired()
    wire.swallow()
    askers = [Asker(both.second.gate(), "/x", *(("POST", b"x") if i % 2 else ())) for i in range(10)]
    for each in askers:
        answer = each.wait()
        assert answer.status in (503, 504), answer
        assert answer.received - answer.sent < HOLD + PATIENCE + LAG, answer
    assert both.first.holding() and get(both.first.gate(), "/direct").body == b"a 1"
    wire.swallow(False)
    wait_for(lambda: get(both.second.gate(), "/healed").ok, 5, "the way is whole again")
    assert "/x" not in [s.path for each in both.apps for s in each.seen]


def test_a_holder_that_advertises_nothing_for_this_gate_is_told_at_once(
        sidecar, redis_server, app):
    store, apps = redis_server(), (app("a"), app("b"))
    both = Pair(*(sidecar(f"s{i + 1}", store, lease=LEASE, gates=[
        {**forwarding(apps[i]), "name": name}]) for i, name in enumerate(("web", "wbe"))),
        apps).start()
    line = both.second.wait_event("gate.no_peer", 5, gate="wbe")
    assert "web at 127.0.0.1:" in line["advertised"] and "same name" in line["msg"]
    assert "names no holder's gate" in sentence(get(both.second.gate("wbe"), timeout=10))


# ---- over and over ----

def test_peer_connections_are_kept_and_their_memory_stays_bounded(
        sidecar, redis_server, things, tmp_path):
    fast = FastApp(tmp_path / "fast.log")
    things.callback(fast.close)
    store = redis_server()
    both = Pair(*(sidecar(f"s{i + 1}", store, lease={"ttl": "10s"}, gates=[
        forwarding(fast, hold_timeout="auto")]) for i in range(2)), (fast, fast)).start()
    wait_for(lambda: get(both.second.gate()).ok, 5, "the standby forwards")
    connections = 32
    warm = 0
    while warm < 3000:
        warm += wrk(both.second.gate(), connections, 1)
    before = [s.process.rss_bytes() for s in (both.first, both.second)]
    wanted = int(os.environ.get("LEASEHOLD_FORWARDED", "15000"))
    done = 0
    while done < wanted:
        done += wrk(both.second.gate(), connections, 2)
    growth = [s.process.rss_bytes() - b for s, b in zip((both.first, both.second), before)]
    accepted = int(re.search(r'leasehold_gate_connections_total\{[^}]*gate="web"[^}]*\} (\d+)',
                             both.first.admin("/metrics").body.decode()).group(1))
    measured(f"{done} requests forwarded: memory {growth[1] / 1024:+.0f} KiB at the standby, "
             f"{growth[0] / 1024:+.0f} KiB at the holder, which accepted {accepted} connections")
    assert max(growth) < bound(MIB)
    assert accepted < 40 * connections, "peer connections are not kept"
