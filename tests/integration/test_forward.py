"""Http gates that forward: what a request to a standby meets (CASES 20), and what forged, stale and
contradictory records, silent and foreign peers come to: bounded time, a clear answer, no loop."""

import json
import os
import re
import socket
import threading
import time
import zlib

import pytest

from harness.client import get
from harness.fast_app import FastApp
from harness.forger import FakeHolder
from harness.measured import measured
from harness.memory import bound
from harness.overlap import assert_no_overlap
from harness.pair import Pair, http_gate
from harness.raw import Raw, ScriptApp, websocket
from harness.wait import wait_for
from harness.wire import Wire
from test_costs import wrk

MIB = 1024 * 1024
TTL = 2.0
HOLD = 2.0  # just above grace, hold-off and a poll: what waits in vain waits so long
LEASE = {"ttl": "2s", "step_down_grace": "500ms", "step_down_hold_off": "1s"}
# Waits of the program end so much later on a busy machine.
LAG = 0.5
# A peer that accepted and says nothing is given up so soon (DESIGN 4).
PATIENCE = 3.5


def forwarding(application, **more):
    return http_gate(application, **{"standby": "forward", "peer_listen": "127.0.0.1:0",
                                     "advertise": "127.0.0.1:0",
                                     "hold_timeout": f"{HOLD:.0f}s", **more})


def peer_port(sidecar):
    """Where its gate takes other sidecars' traffic."""
    line = sidecar.wait_event("gate.listen", 5, gate="web", msg="listening for other sidecars")
    return int(line["address"].rpartition(":")[2])


def process_id(sidecar):
    return sidecar.admin("/v1/status").json()["node"]["process_id"]


def sentence(answer):
    """The problem's detail; the answer must be one."""
    assert answer.headers["Content-Type"] == "application/problem+json", answer.headers
    return json.loads(answer.body)["detail"]


class Asker:
    """One request in its own thread."""

    def __init__(self, address, path, method="GET", body=None, timeout=20):
        self.answer = None
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        args=(address, path, method, body, timeout))
        self._thread.start()

    def _run(self, address, path, method, body, timeout):
        self.answer = get(address, path, method=method, body=body, timeout=timeout)

    def wait(self, seconds=20):
        self._thread.join(seconds)
        assert self.answer is not None, "no answer"
        return self.answer


@pytest.fixture
def pair(sidecar, app, redis_server):
    """pair(gate options of both, second={of the other}) -> Pair that forwards; .store is its redis."""
    def make(apps=None, second=None, first=None, lease=None, **more):
        store = redis_server()
        apps = apps or (app("a"), app("b"))
        gates = [forwarding(apps[i], **{**more, **((first, second)[i] or {})}) for i in range(2)]
        both = Pair(*(sidecar(f"s{i + 1}", store, gates=[gates[i]], lease={**LEASE, **(lease or {})})
                      for i in range(2)), apps).start()
        both.store = store
        # The route to the holder's gate is known as well.
        wait_for(lambda: get(both.second.gate(), "/warm").ok, 5, "the standby forwards")
        for each in apps:
            getattr(each, "seen", []).clear()
        return both
    return make


@pytest.fixture
def lone(sidecar, app, redis_server, things):
    """lone(address=...) -> a standby whose record says that somebody at that address holds."""
    def make(address, **options):
        store = redis_server()
        backend = app("b")
        one = sidecar("s2", store, gates=[forwarding(backend)], lease=LEASE).start()
        one.wait_active()
        at = time.time()
        forged = FakeHolder(store, address(one) if callable(address) else address, **options)
        things.callback(forged.close)
        one.wait_event("lease.lost", 3, since=at)
        wait_for(lambda: one.status()["state"] == "standby", 3, "it is a standby")
        one.app, one.forged, one.store = backend, forged, store
        return one
    return make


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


def test_case_20_an_unknown_holder_is_waited_for_and_then_503_with_retry_after(lone):
    one = lone("")  # somebody holds who advertises nothing for this gate
    answer = get(one.gate(), timeout=HOLD + 5)
    assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1
    assert HOLD - 0.1 < answer.received - answer.sent < HOLD + LAG
    assert "app" in sentence(answer) or "lease" in json.loads(answer.body)
    assert one.app.seen == []


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


# ---- records that are not true ----

def refused_at_once(one, method="GET", body=None):
    """502 within a moment; the answer."""
    answer = get(one.gate(), "/x", method=method, body=body)
    assert answer.status == 502, answer
    assert answer.received - answer.sent < LAG, answer
    return answer


def assert_held_then_503(one):
    """Bounded by hold_timeout, and not a busy loop."""
    cpu = one.process.cpu_seconds()
    askers = [Asker(one.gate(), "/x", "POST", b"precious") for _ in range(20)]
    askers += [Asker(one.gate(), "/y") for _ in range(20)]
    for each in askers:
        answer = each.wait()
        assert answer.status == 503 and "Retry-After" in answer.headers, answer
        assert answer.received - answer.sent < HOLD + PATIENCE + LAG, answer
    spent = one.process.cpu_seconds() - cpu
    assert spent < bound(1) * 0.5, f"{spent:.2f} s of processor time for 40 held requests"


def assert_recovers(one):
    """The record goes stale: it takes over, and serves what comes then."""
    before = len(one.app.seen)
    one.forged.stop()
    one.wait_active(TTL + 2, since=one.forged.stopped_at - 0.01)
    answer = get(one.gate(), "/after")
    assert answer.status == 200 and answer.token == 51, answer
    assert [s.path for s in one.app.seen[before:] if s.path == "/after"] == ["/after"]


def test_a_forged_record_that_names_a_foreign_server_is_502_and_gives_it_no_body(lone, app):
    foreign = app("foreign")
    one = lone(foreign.address)
    assert "peer_listen" in sentence(refused_at_once(one))
    # It waits for the body, we for the admission.
    answer = get(one.gate(), "/x", method="POST", body=b"precious")
    assert answer.status in (502, 503), answer
    assert answer.received - answer.sent < HOLD + PATIENCE + LAG
    assert [s.body for s in foreign.seen if s.body] == [], "no body goes to who did not admit"
    assert_recovers(one)


def test_a_forged_record_that_names_the_gates_own_ear_makes_no_loop(lone):
    one = lone(lambda s: "%s:%d" % s.gate())
    for method, body in (("GET", None), ("POST", b"precious")):
        assert "advertise" in sentence(refused_at_once(one, method, body))
    accepted = one.metric("leasehold_gate_connections_total", gate="web")
    assert 2 <= accepted < 10, f"{accepted} connections of two requests"


def test_a_forged_record_that_names_the_gates_own_peer_listener_is_held_and_then_503(lone):
    one = lone(lambda s: f"127.0.0.1:{peer_port(s)}")
    assert_held_then_503(one)


def test_a_forged_record_with_our_own_process_and_peer_listener_makes_no_loop(lone):
    """The hello is right, and still nobody is served: who forwards does not hold."""
    one = lone(lambda s: f"127.0.0.1:{peer_port(s)}")
    one.forged.fields["peer:web"] = f"127.0.0.1:{peer_port(one)}"
    one.forged.fields["process_id"] = process_id(one)
    answer = get(one.gate(), timeout=10)
    assert answer.status in (200, 503), answer
    assert answer.received - answer.sent < HOLD + PATIENCE + LAG


def test_a_peer_that_accepts_and_never_answers_costs_bounded_time(lone, things):
    hole = Wire()
    things.callback(hole.close)
    hole.swallow()
    one = lone(hole.address)
    assert_held_then_503(one)
    assert hole.accepted < 100, f"{hole.accepted} connects for 40 requests"
    assert_recovers(one)


def test_a_record_that_names_a_closed_port_is_held_and_then_503(lone):
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    one = lone(f"127.0.0.1:{port}")
    assert_held_then_503(one)


def test_a_forged_address_beside_a_live_holder_is_mended_by_its_next_renewal(pair, app):
    both = pair()
    foreign = app("foreign")
    both.store.write_record(**{"peer:web": foreign.address})
    wait_for(lambda: both.store.record()["peer:web"] != foreign.address, TTL, "a renewal")
    wait_for(lambda: get(both.second.gate()).app == "a", TTL, "the standby forwards again")
    assert both.first.token() == 1 and both.first.holding()


def test_two_sidecars_that_each_believe_the_other_holds_pass_nothing_round(
        sidecar, app, redis_server):
    """Each has a store of its own in which the other is said to hold, under its real process id."""
    stores = [redis_server(name=f"redis{i}") for i in range(2)]
    apps = (app("a"), app("b"))
    both = [sidecar(f"s{i + 1}", stores[i], gates=[forwarding(apps[i])], lease=LEASE).start()
            for i in range(2)]
    for each in both:
        each.wait_active()
    at = time.time()
    forged = [FakeHolder(stores[i], f"127.0.0.1:{peer_port(both[1 - i])}",
                         process_id=process_id(both[1 - i])) for i in range(2)]
    for each in both:
        each.wait_event("lease.lost", 3, since=at)
    try:
        askers = [Asker(both[i % 2].gate(), "/x", "POST", b"precious") for i in range(20)]
        for each in askers:
            answer = each.wait()
            assert answer.status == 503, answer
            assert answer.received - answer.sent < HOLD + LAG
    finally:
        for each in forged:
            each.stop()
    assert apps[0].seen == [] and apps[1].seen == []


def test_a_stale_record_holds_requests_and_the_survivor_serves_them_after_one_ttl(pair):
    both = pair(hold_timeout="6s")
    killed = both.first.kill9()
    askers = [Asker(both.second.gate(), f"/held{i}", *(("POST", b"x") if i % 2 else ()))
              for i in range(10)]
    answers = [each.wait() for each in askers]
    assert [a.status for a in answers] == [200] * 10, answers
    assert {a.body for a in answers} == {b"b 2"}
    assert sorted(s.path for s in both.apps[1].seen) == sorted(f"/held{i}" for i in range(10))
    longest = max(a.received for a in answers) - killed
    measured(f"holder killed, ttl {TTL} s: what came to the standby was answered {longest:.2f} s later")
    assert longest < TTL * 1.05 + 0.3 + LAG


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
