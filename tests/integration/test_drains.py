"""Planned moves under traffic that does not want to leave (CASES 18, 19)."""

import socket
import threading
import time

import pytest

from harness.client import get
from harness.measured import measured
from harness.overlap import assert_no_overlap
from harness.pair import Pair, http_gate
from harness.raw import CLOSED, Raw, ScriptApp, websocket
from harness.wait import wait_for

GRACE = 3.0
DRAIN_TUNNELS = 1.5
# A thread of a busy test machine notes what it received so much later than it came.
READER_LAG = 0.1


class HotClient:
    """Asks again as soon as it is answered, on one keep-alive connection, until that ends."""

    def __init__(self, address):
        self._raw = Raw(address)
        self.statuses = []
        self.closes = 0
        self.error = None
        self.last_byte_at = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            while not self.closes:
                self._raw.send(b"GET /slow?ms=100 HTTP/1.1\r\nHost: app\r\n\r\n")
                answer = self._raw.response()
                self.last_byte_at = time.time()
                self.statuses.append(answer.status)
                self.closes += answer.closes
            if self._raw.end() != CLOSED:
                self.error = "announced the close, but did not close"
        except (OSError, AssertionError) as error:
            self.error = error

    def done(self):
        return not self._thread.is_alive()

    def close(self):
        self._raw.close()
        self._thread.join(15)


def test_case_19_busy_clients_a_websocket_and_idle_tcp_all_leave_within_the_grace(
        sidecar, app, redis_server, tcp_echo, client, things):
    store = redis_server()
    apps = (app("a"), app("b"))
    tunnels = ScriptApp()
    things.callback(tunnels.close)
    echo = tcp_echo()
    both = Pair(*(sidecar(f"s{i + 1}", store, gates=[
        http_gate(apps[i]),
        {"name": "ws", "type": "http", "upstream": tunnels.address},
        {"name": "tcp", "type": "tcp", "upstream": echo.address},
    ], lease={"ttl": "4s", "step_down_grace": f"{GRACE:.0f}s",
              "drain_tunnels": f"{DRAIN_TUNNELS * 1000:.0f}ms"}) for i in range(2)), apps).start()
    one, two = both.first, both.second
    busy = [HotClient(one.gate()) for _ in range(20)]
    for each in busy:
        things.callback(each.close)
    socket_ = things.enter_context(websocket(one.gate("ws")))
    idle = [things.enter_context(Raw(one.gate("tcp"))) for _ in range(3)]
    wait_for(lambda: all(len(b.statuses) >= 3 for b in busy) and echo.accepted == 3, 10, "all busy")
    asking = client(two.gate(), rate=50)

    at = time.time()
    assert one.step_down(wait=False).status == 202
    one.wait_event("lease.draining", 1, since=at)
    socket_.send(b"still here")
    assert socket_.exactly(10) == b"still here", "a tunnel has drain_tunnels to finish in"
    ends = []
    for each in [socket_, *idle]:
        assert each.end(GRACE + 2) is not None, "a tunnel outlived the grace"
        ends.append(time.time())
    wait_for(lambda: all(b.done() for b in busy), GRACE + 5, "every client's connection is closed")
    draining = one.last("lease.draining").at
    released = one.wait_event("lease.released", GRACE, since=at).at

    for each in busy:
        assert each.error is None, each.error
        assert each.closes == 1
        assert set(each.statuses[:-1]) == {200}, each.statuses
        assert each.statuses[-1] in (200, 503), each.statuses
    assert max(ends) <= draining + GRACE + READER_LAG
    assert min(ends) >= draining + DRAIN_TUNNELS - 0.01, "tunnels were cut before their time"
    assert released - draining <= GRACE + 0.05, f"{released - draining:.3f} s"
    # S2's first byte comes after S1's last.
    opened = two.wait_event("gate.opened", 2, since=at).at
    wait_for(asking.oks, 2, "the next holder serves")
    asking.stop()
    last_byte = max([b.last_byte_at for b in busy] + ends)
    shut = max(e.at for e in one.events("gate.closed", since=at))
    # The next holder may see the release before the former one has its confirmation.
    assert shut <= released and shut <= opened
    assert asking.oks()[0].received + READER_LAG > last_byte
    assert_no_overlap(*apps)
    assert {t for t, *_ in assert_no_overlap(*apps)} == {1, 2}
    measured(f"case 19: 20 busy clients, a WebSocket and idle TCP left {released - draining:.2f} s "
             f"after the drain began (grace {GRACE} s, tunnels {DRAIN_TUNNELS} s); the next holder's "
             f"gate opened {(opened - released) * 1000:.0f} ms after the release")


class WorkingApp:
    """For each request it connects through `gate` ten times over a second, each time with a word
    there and back, and then answers how often that went well. Its words are `works`: (time, ok)."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self.gate = None
        self.works = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        data = b""
        while not data.endswith(b"\r\n\r\n"):
            data += connection.recv(65536)
        for _ in range(10):
            self.works.append((time.time(), self._work()))
            time.sleep(0.1)  # the work itself
        body = b"%d" % sum(ok for _, ok in self.works)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def _work(self):
        try:
            with Raw(self.gate, timeout=2) as raw:
                return raw.send(b"out").exactly(3) == b"out"
        except OSError:
            return False

    def close(self):
        self._listener.close()


def test_case_18_an_outbound_gate_serves_through_the_drain_and_shuts_before_the_release(
        sidecar, redis_server, tcp_echo, things):
    store = redis_server()
    working = WorkingApp()
    things.callback(working.close)
    echo = tcp_echo()
    one = sidecar("s1", store, gates=[
        {"name": "web", "type": "http", "upstream": working.address},
        {"name": "out", "type": "tcp", "direction": "outbound", "upstream": echo.address},
    ], lease={"ttl": "4s", "step_down_grace": "3s"}).start()
    one.wait_active()
    working.gate = one.gate("out")
    answers = []
    asker = threading.Thread(target=lambda: answers.append(get(one.gate())), daemon=True)
    asker.start()
    wait_for(lambda: len(working.works) >= 3, 5, "the request is at work")
    at = time.time()
    assert one.step_down(wait=False, take_back=False).status == 202
    assert get(one.gate()).status == 503, "inbound gates stop admitting at once"
    asker.join(10)
    assert answers[0].status == 200 and answers[0].body == b"10", (answers, working.works)
    assert sum(1 for t, ok in working.works if t > at and ok) >= 3, "work was done in the drain"
    released = one.wait_event("lease.released", 3, since=at).at
    shut = one.wait_event("gate.closed", 3, since=at, gate="out").at
    assert answers[0].received - READER_LAG <= shut <= released
    assert released - shut < 0.25, "an outbound gate shuts just before the release"
    with pytest.raises(OSError):
        Raw(working.gate, timeout=2).send(b"out").exactly(3)


def test_case_18_sigterm_after_a_step_down_that_stays_down_exits_within_a_second(
        sidecar, app, store_server):
    store = store_server()
    apps = (app("a"), app("b"))
    both = Pair(*(sidecar(f"s{i + 1}", store, gates=[http_gate(apps[i])]) for i in range(2)),
                apps).start()
    done = both.first.cli("step-down", "--yes", "--wait", "--no-take-back")
    assert done.returncode == 0, done.stderr
    assert "taken_over_by_another_process" in done.stdout
    at = time.time()
    assert both.first.stop() == 0
    took = time.time() - at
    assert took < 1, f"{took:.3f} s"
    assert both.second.holding() and both.second.token() == 2


def test_case_18_sigterm_in_the_hold_off_of_a_step_down_exits_within_a_second(
        sidecar, app, tmp_path):
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"))],
                  lease={"step_down_hold_off": "10s"}).start()
    one.wait_active()
    assert one.step_down(wait=False).status == 202
    one.wait_event("lease.released", 5)
    at = time.time()
    assert one.stop() == 0
    assert time.time() - at < 1
    assert len(one.events("lease.acquired")) == 1, "nothing is taken back after SIGTERM"


def test_sigterm_under_load_loses_no_request_when_clients_honour_the_close(
        sidecar, app, redis_server, tcp_echo, things):
    """The pod goes away: what is in flight finishes, nothing is cut, exit code 0."""
    store = redis_server()
    one = sidecar("s1", store, gates=[http_gate(app("a"))], lease={"step_down_grace": "2s"}).start()
    one.wait_active()
    busy = [HotClient(one.gate()) for _ in range(10)]
    for each in busy:
        things.callback(each.close)
    wait_for(lambda: all(len(b.statuses) >= 2 for b in busy), 10, "all busy")
    assert one.stop() == 0
    wait_for(lambda: all(b.done() for b in busy), 5, "every client's connection is closed")
    assert [b.error for b in busy] == [None] * 10
    assert all(b.closes == 1 and set(b.statuses[:-1]) == {200} for b in busy)


def test_at_the_end_of_grace_an_unanswered_request_gets_503_and_a_begun_answer_is_cut(
        sidecar, app, tmp_path):
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"))],
                  lease={"step_down_grace": "600ms"}).start()
    one.wait_active()
    with Raw(one.gate()) as silent, Raw(one.gate()) as begun:
        silent.send(b"GET /slow?ms=4000 HTTP/1.1\r\nHost: app\r\n\r\n")
        begun.send(b"GET /stream?bytes=200000&ms=4000 HTTP/1.1\r\nHost: app\r\n\r\n")
        assert begun.head()[0] == 200
        wait_for(lambda: one.status()["gates"][0]["in_flight"] == 2, 2, "both are in flight")
        assert one.step_down(wait=False).status == 202
        answer = silent.response()
        assert answer.status == 503 and answer.closes, answer
        assert begun.end() is not None, "cut, so that nobody takes it for whole"
        ended = time.time()
    draining, released = one.last("lease.draining"), one.wait_event("lease.released", 2)
    assert 0.59 <= released.at - draining.at <= 0.9, f"{released.at - draining.at:.3f} s"
    assert ended - draining.at < 0.9 + READER_LAG


@pytest.mark.parametrize("on_loss", ["cut", "finish"])
def test_a_loss_cuts_what_is_in_flight_unless_it_may_finish(
        sidecar, app, store_server, tcp_echo, on_loss):
    store = store_server()
    one = sidecar("s1", store, gates=[
        http_gate(app("a"), on_loss=on_loss),
        {"name": "tcp", "type": "tcp", "upstream": tcp_echo().address, "on_loss": on_loss}]).start()
    one.wait_active()
    with Raw(one.gate()) as begun, Raw(one.gate("tcp")) as tunnel:
        begun.send(b"GET /stream?bytes=20000&ms=1500 HTTP/1.1\r\nHost: app\r\n\r\n")
        tunnel.send(b"ping")
        assert tunnel.exactly(4) == b"ping"
        wait_for(lambda: one.status()["gates"][0]["in_flight"] == 1, 2, "it is in flight")
        store.write_record(token=2, node_id="intruder", process_id="f" * 32, beat=1, state="held")
        one.wait_event("lease.lost", 2)
        assert get(one.gate()).status == 503, "nothing is admitted"
        if on_loss == "finish":
            assert len(begun.response().body) == 20000
            assert tunnel.send(b"more").exactly(4) == b"more"
        else:
            with pytest.raises(OSError):
                begun.response()
            assert tunnel.end(1) is not None


HOLDING = {"standby": "hold", "hold_timeout": "3s"}
QUICK = {"step_down_grace": "500ms", "step_down_hold_off": "2s"}


def held(one):
    return one.status()["gates"][0]["held"]


class Waiting:
    """One request that may wait long."""

    def __init__(self, address, path="/held"):
        self.answer = None
        self._thread = threading.Thread(target=self._run, args=(address, path), daemon=True)
        self._thread.start()

    def _run(self, address, path):
        self.answer = get(address, path, timeout=20)

    def wait(self, seconds=15):
        self._thread.join(seconds)
        assert self.answer is not None, "no answer"
        return self.answer


def test_a_request_held_in_a_drain_is_served_after_the_take_back_under_the_new_token(
        sidecar, app, tmp_path):
    backend = app("a")
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(backend, **HOLDING)],
                  lease=QUICK).start()
    one.wait_active()
    assert one.step_down(wait=False).status == 202
    waiting = Waiting(one.gate())
    wait_for(lambda: held(one) == 1, 2, "the request is held")
    answer = waiting.wait()
    assert answer.status == 200 and answer.body == b"a 2"
    assert [s.token for s in backend.seen] == [2], "it reached the application once"
    assert answer.received >= one.last("lease.acquired").at


def test_a_request_held_at_the_standby_is_served_when_the_move_is_done(sidecar, app, store_server):
    store = store_server()
    apps = (app("a"), app("b"))
    both = Pair(*(sidecar(f"s{i + 1}", store, gates=[http_gate(apps[i], **HOLDING)], lease=QUICK)
                  for i in range(2)), apps).start()
    waiting = [Waiting(both.second.gate(), f"/{i}") for i in range(5)]
    wait_for(lambda: held(both.second) == 5, 2, "all are held")
    left = Waiting(both.first.gate(), "/slow?ms=300")
    wait_for(lambda: apps[0].seen, 2, "one is in flight at the holder")
    assert both.first.step_down().json()["outcome"] == "taken_over_by_another_process"
    assert left.wait().body == b"a 1"
    assert [w.wait().body for w in waiting] == [b"b 2"] * 5
    assert sorted(s.path for s in apps[1].seen) == [f"/{i}" for i in range(5)], "each once"
    assert_no_overlap(*apps)


def test_a_held_request_is_refused_after_hold_timeout_and_one_too_many_at_once(
        sidecar, app, redis_server):
    store = redis_server()
    apps = (app("a"), app("b"))
    both = Pair(*(sidecar(f"s{i + 1}", store, gates=[http_gate(apps[i], max_held=2, **HOLDING)],
                          lease=QUICK) for i in range(2)), apps).start()
    waiting = [Waiting(both.second.gate()) for _ in range(2)]
    wait_for(lambda: held(both.second) == 2, 2, "both are held")
    refused = get(both.second.gate())
    assert refused.status == 503 and refused.received - refused.sent < 1
    for each in waiting:
        answer = each.wait()
        assert answer.status == 503 and answer.headers["Retry-After"] == "1"
        assert 2.9 < answer.received - answer.sent < 4.5
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert apps[1].seen == []
    assert held(both.second) == 0
    assert both.second.metric("leasehold_gate_refused_total", gate="web", reason="hold_full") == 1
    assert both.second.metric("leasehold_gate_refused_total", gate="web",
                              reason="hold_timeout") == 2


def test_a_tcp_connection_held_at_the_standby_is_spliced_in_by_the_move(
        sidecar, redis_server, tcp_echo):
    store = redis_server()
    echo = tcp_echo()
    both = Pair(*(sidecar(f"s{i + 1}", store, gates=[
        {"name": "web", "type": "tcp", "upstream": echo.address, **HOLDING}], lease=QUICK)
        for i in range(2)), ()).start()
    with Raw(both.second.gate()) as raw:
        raw.send(b"early words")
        wait_for(lambda: held(both.second) == 1, 2, "the connection is held")
        assert echo.accepted == 0
        both.first.step_down()
        assert raw.exactly(11) == b"early words"
