"""Requests that go wrong in real life: early answers, late readers, trailers, long pipelines
(CASES 33, 34)."""

import hashlib
import socket

import pytest

from harness.measured import measured
from harness.memory import MIB, bound
from harness.raw import Raw, ScriptApp
from harness.wait import wait_for, watch_for

EXPECT = (b"POST %s HTTP/1.1\r\nHost: app\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")


@pytest.fixture
def script(things):
    backend = ScriptApp()
    things.callback(backend.close)
    return backend


@pytest.fixture
def serving(sidecar, script, tmp_path):
    """serving(**gate) -> a sidecar that holds, before the script application."""
    def make(**gate):
        one = sidecar("s1", tmp_path / "store", gates=[
            {"name": "web", "type": "http", "upstream": script.address, **gate}]).start()
        one.wait_active()
        return one
    return make


def test_case_33_an_early_401_reaches_the_client_and_the_body_is_never_sent(serving, script):
    one = serving()
    with Raw(one.gate()) as raw:
        raw.send(EXPECT % b"/early")
        answer = raw.response()
        assert answer.status == 401 and answer.body == b"who?", answer
        assert answer.interim == [], "nobody asked for the body"
        raw.send(b"GET /after HTTP/1.1\r\nHost: app\r\n\r\n")  # as a client does that gave up
        # The gate cannot know whether these bytes are a body or a request: it must not guess.
        assert raw.end() is not None
    assert script.paths() == ["/early"]
    assert script.after_early == b"", "bytes of the body, or of what came after it, were passed on"


def test_case_33_a_100_continue_of_the_application_comes_before_its_answer(serving, script):
    one = serving()
    with Raw(one.gate()) as raw:
        raw.send(EXPECT % b"/continue")
        wait_for(lambda: script.heads, 5, "the head reaches the application before the body")
        assert script.bodies == []
        assert raw.head()[0] == 100
        raw.send(b"body")
        answer = raw.response()
    assert answer.status == 200 and answer.body == b"body"
    assert script.bodies == [b"body"]
    assert "expect: 100-continue" in script.heads[0].lower()


def test_case_33_a_standby_answers_503_before_any_100_and_reads_no_body(
        sidecar, script, tmp_path, serving):
    serving()
    two = sidecar("s2", tmp_path / "store",
                  gates=[{"name": "web", "type": "http", "upstream": script.address}]).start()
    wait_for(lambda: two.status()["record"], 5, "the standby sees the holder")
    with Raw(two.gate()) as raw:
        raw.send(EXPECT % b"/x")
        answer = raw.response()
        assert answer.status == 503 and answer.interim == []
        assert answer.get("Retry-After") == "1"
        assert answer.get("Content-Type") == "application/problem+json"
        assert b'"lease":"app"' in answer.body and b'"state":"standby"' in answer.body
    assert script.heads == []


def test_case_34_trailers_that_nobody_announced_reach_the_client(serving):
    one = serving()
    with Raw(one.gate()) as raw:
        raw.send(b"GET /trailers HTTP/1.1\r\nHost: app\r\nTE: trailers\r\n\r\n")
        answer = raw.response()
        assert answer.body == b"abc"
        assert answer.trailers == [("X-Checksum", "900150983cd24fb0"), ("X-Took", "1")]
        raw.send(b"GET /again HTTP/1.1\r\nHost: app\r\n\r\n")
        assert raw.response().status == 200, "the connection goes on behind trailers"


def test_fifty_pipelined_requests_are_answered_in_order(serving, script):
    one = serving()
    with Raw(one.gate()) as raw:
        raw.send(b"".join(b"POST /%d HTTP/1.1\r\nHost: app\r\nContent-Length: 2\r\n\r\n%02d"
                          % (i, i) for i in range(50)))
        assert [raw.response().body for _ in range(50)] == [b"%02d" % i for i in range(50)]
    assert script.paths() == [f"/{i}" for i in range(50)]


def test_a_slow_reader_of_20_mib_gets_every_byte_and_costs_only_buffers(serving):
    one = serving()
    size = 20 * MIB
    with Raw(one.gate()) as raw:
        raw.send(b"GET /warm HTTP/1.1\r\nHost: app\r\n\r\n")
        raw.response()
    before = one.process.rss_bytes()
    highest, limit = 0, bound(2 * MIB)
    digest = hashlib.sha256()
    with Raw(one.gate(), timeout=30, receive_buffer=16384) as raw:
        raw.send(b"GET /big?%d HTTP/1.1\r\nHost: app\r\n\r\n" % size)
        # Nothing is read for a while: all that the application sends in it piles up somewhere.
        watch_for(lambda: one.process.rss_bytes() - before < limit, 1.0,
                  lambda: f"{one.process.rss_bytes() - before} bytes more for one reader")
        assert raw.head()[0] == 200
        got = 0
        while got < size:
            piece = raw.read_some()
            assert piece, f"cut after {got} bytes"
            got += len(piece)
            digest.update(piece)
            highest = max(highest, one.process.rss_bytes())
    assert got == size
    assert digest.digest() == hashlib.sha256(bytes(range(256)) * (size // 256)).digest()
    assert highest - before < limit, f"{highest - before} bytes more for one reader"
    measured(f"slow reader of 20 MiB: {max(highest - before, 0) // 1024} KiB more memory")


def test_a_20_mib_upload_to_a_slow_application_costs_only_buffers(serving, things):
    listener = socket.create_server(("127.0.0.1", 0))
    things.callback(listener.close)
    one = serving(upstream="127.0.0.1:%d" % listener.getsockname()[1])
    size = 20 * MIB
    before = one.process.rss_bytes()
    with Raw(one.gate(), timeout=30) as raw:
        raw.send(b"POST /up HTTP/1.1\r\nHost: app\r\nContent-Length: %d\r\n\r\n" % size)
        raw.socket.settimeout(0.5)
        sent = 0
        piece = bytes(65536)
        with pytest.raises((TimeoutError, socket.timeout)):  # back-pressure reaches the client
            while sent < size:
                sent += raw.socket.send(piece)
        assert one.process.rss_bytes() - before < bound(2 * MIB)
        connection, _ = listener.accept()
        connection.settimeout(10)
        raw.socket.settimeout(10)
        got = b""
        while b"\r\n\r\n" not in got:
            got += connection.recv(65536)
        got = len(got.partition(b"\r\n\r\n")[2])
        raw.socket.setblocking(False)
        while got < size:
            try:
                while sent < size:
                    sent += raw.socket.send(piece[:size - sent])
            except BlockingIOError:
                pass
            data = connection.recv(1 << 18)
            assert data, f"cut after {got} bytes"
            got += len(data)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        raw.socket.settimeout(10)
        assert raw.response().body == b"ok"
        connection.close()
    assert one.process.rss_bytes() - before < bound(2 * MIB)


def test_an_application_that_is_not_there_is_502_and_one_that_says_nothing_504(serving, things):
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    one = serving(upstream=f"127.0.0.1:{port}", response_timeout="300ms")
    with Raw(one.gate()) as raw:
        raw.send(b"GET /x HTTP/1.1\r\nHost: app\r\n\r\n")
        answer = raw.response()
        assert answer.status == 504 and b"urn:leasehold:problem:" in answer.body, answer
    listener.close()
    with Raw(one.gate()) as raw:
        raw.send(b"GET /x HTTP/1.1\r\nHost: app\r\n\r\n")
        assert raw.response().status == 502
    assert one.holding(), "an application that fails costs a request, not the lease"


def test_limits_have_their_own_codes(serving, script):
    one = serving(head_bytes_max="1KiB", target_bytes_max="256B", body_bytes_max="1KiB",
                  head_timeout="300ms", body_timeout="300ms")
    def status(message):
        with Raw(one.gate()) as raw:
            raw.send(message)
            answer = raw.response()
            assert answer.closes and raw.end() is not None
            return answer.status
    assert status(b"GET /%s HTTP/1.1\r\nHost: app\r\n\r\n" % (b"x" * 300)) == 414
    assert status(b"GET / HTTP/1.1\r\nHost: app\r\nX: %s\r\n\r\n" % (b"x" * 1100)) == 431
    assert status(b"POST / HTTP/1.1\r\nHost: app\r\nContent-Length: 1025\r\n\r\n") == 413
    assert status(b"POST / HTTP/1.1\r\nHost: app\r\nTransfer-Encoding: chunked\r\n\r\n"
                  b"401\r\n" + b"x" * 1025 + b"\r\n0\r\n\r\n") == 413
    assert status(b"GET / HTTP/1.1\r\nHost:") == 408
    assert status(b"POST / HTTP/1.1\r\nHost: app\r\nContent-Length: 3\r\n\r\na") == 408
    assert script.bodies == [], "a request that was refused reached the application whole"
