"""The table of HTTP vectors (CASES) through the program: each message once whole and once byte by
byte. What is ambiguous is answered 400 (501 where the table allows it) and the connection is closed;
nothing of it, and nothing behind it, reaches the application."""

import contextlib

import pytest

from harness.raw import Raw, ScriptApp
from harness.sidecar import Sidecar

HOST = b"Host: app\r\n"
BEHIND = b"GET /behind HTTP/1.1\r\nHost: app\r\n\r\n"


def post(*headers, body=b"abc", version=b"1.1", host=HOST):
    head = b"".join(h + b"\r\n" for h in headers)
    return b"POST /vector HTTP/" + version + b"\r\n" + host + head + b"\r\n" + body


def chunked(body):
    return post(b"Transfer-Encoding: chunked", body=body)


CHUNKS = b"3\r\nabc\r\n0\r\n\r\n"
REFUSED = {
    "content_length_and_transfer_encoding":
        post(b"Content-Length: 3", b"Transfer-Encoding: chunked", body=CHUNKS),
    "transfer_encoding_and_content_length":
        post(b"Transfer-Encoding: chunked", b"Content-Length: 3", body=CHUNKS),
    "two_different_content_lengths": post(b"Content-Length: 3", b"Content-Length: 4"),
    "content_length_with_a_plus": post(b"Content-Length: +3"),
    "content_length_list": post(b"Content-Length: 3, 3"),
    "content_length_negative": post(b"Content-Length: -3"),
    "content_length_hex": post(b"Content-Length: 0x3"),
    "content_length_past_64_bits": post(b"Content-Length: 18446744073709551619"),
    "content_length_empty": post(b"Content-Length:"),
    "chunked_then_gzip": post(b"Transfer-Encoding: chunked, gzip", body=CHUNKS),
    "gzip_then_chunked": post(b"Transfer-Encoding: gzip, chunked", body=CHUNKS),
    "xchunked": post(b"Transfer-Encoding: xchunked", body=CHUNKS),
    "transfer_encoding_with_a_space_before_the_colon":
        post(b"Transfer-Encoding : chunked", body=CHUNKS),
    "two_transfer_encodings":
        post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=CHUNKS),
    "transfer_encoding_identity_beside_chunked":
        post(b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked", body=CHUNKS),
    "transfer_encoding_on_http_1_0":
        post(b"Transfer-Encoding: chunked", body=CHUNKS, version=b"1.0"),
    "folded_header": post(b"X-Long: one", b" two", b"Content-Length: 3"),
    "folded_by_a_tab": post(b"X-Long: one", b"\ttwo", b"Content-Length: 3"),
    "bare_lf_in_the_head": b"POST /vector HTTP/1.1\nHost: app\nContent-Length: 3\n\nabc",
    "bare_lf_after_one_header": b"GET /vector HTTP/1.1\r\nHost: app\nX: y\r\n\r\n",
    "bare_lf_after_a_chunk_size": chunked(b"3\nabc\r\n0\r\n\r\n"),
    "bare_lf_after_a_chunk": chunked(b"3\r\nabc\n0\r\n\r\n"),
    "bare_cr_in_a_value": post(b"X: a\rb", b"Content-Length: 3"),
    "nul_in_a_value": post(b"X: a\x00b", b"Content-Length: 3"),
    "nul_in_a_name": post(b"X\x00Y: a", b"Content-Length: 3"),
    "chunk_size_0x3": chunked(b"0x3\r\nabc\r\n0\r\n\r\n"),
    "chunk_size_negative": chunked(b"-3\r\nabc\r\n0\r\n\r\n"),
    "chunk_size_of_17_digits": chunked(b"00000000000000003\r\nabc\r\n0\r\n\r\n"),
    "chunk_size_past_64_bits": chunked(b"10000000000000003\r\nabc\r\n0\r\n\r\n"),
    "chunk_size_empty": chunked(b"\r\nabc\r\n0\r\n\r\n"),
    "endless_chunk_extension": chunked(b"3;x=" + b"y" * 20000 + b"\r\nabc\r\n0\r\n\r\n"),
    "no_host": post(b"Content-Length: 3", host=b""),
    "two_hosts": post(b"Host: other", b"Content-Length: 3"),
    "empty_header_name": post(b": x", b"Content-Length: 3"),
    "header_without_a_colon": post(b"X-Nothing", b"Content-Length: 3"),
    "space_before_the_first_header": b"GET /vector HTTP/1.1\r\n X: y\r\nHost: app\r\n\r\n",
    "http_0_9": b"GET /vector\r\n\r\n",
    "http_2_0": b"GET /vector HTTP/2.0\r\nHost: app\r\n\r\n",
    "http2_preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "tls_hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    "not_http": b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n\r\n",
}
OR_501 = ("chunked_then_gzip", "gzip_then_chunked", "xchunked",
          "transfer_encoding_with_a_space_before_the_colon",
          "transfer_encoding_identity_beside_chunked")
# A higher version may be called by its own name too.
OR_505 = ("http_2_0", "http2_preface", "http_0_9")
# What of these may have been passed on is a head whose body broke later: it must not look whole.
BODY_BREAKS = tuple(name for name in REFUSED if "chunk_size" in name or "chunk_extension" in name or
                    name == "bare_lf_after_a_chunk")


def path_of(name, bytewise):
    """Of its own: a head that was passed on before its body broke may be noted late."""
    return f"/{name}{'-bytewise' if bytewise else ''}"


def refused_paths(but=()):
    return [path_of(name, way) for name in REFUSED if name not in but for way in (False, True)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """(a sidecar that holds, its application); one for all vectors."""
    directory = tmp_path_factory.mktemp("vectors")
    with contextlib.ExitStack() as stack:
        backend = ScriptApp()
        stack.callback(backend.close)
        one = Sidecar(directory / "s1", "s1", directory / "store",
                      gates=[{"name": "web", "type": "http", "upstream": backend.address}])
        stack.callback(one.close)
        one.start().wait_active()
        yield one, backend


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
@pytest.mark.parametrize("name", REFUSED)
def test_ambiguous_or_broken_is_400_and_a_close(scene, name, bytewise):
    one, backend = scene
    bodies = len(backend.bodies)
    path = path_of(name, bytewise)
    data = REFUSED[name].replace(b"/vector", path.encode()) + BEHIND
    with Raw(one.gate()) as raw:
        raw.send_bytewise(data) if bytewise else raw.send(data)
        answer = raw.response()
        allowed = (400,) + (501,) * (name in OR_501) + (505,) * (name in OR_505)
        assert answer.status in allowed, answer
        assert answer.closes, answer
        assert answer.get("Content-Type") == "application/problem+json"
        assert raw.end() is not None, "the connection stays open"
    assert "/behind" not in backend.paths()
    if name not in BODY_BREAKS:
        assert path not in backend.paths(), "it reached the application"
    assert backend.bodies[bodies:] == [], "the application took it for a whole request"


ACCEPTED = {
    # name: (message, methods, check(answers, heads, bodies, trailers))
    "get_with_a_body":
        (b"GET /x HTTP/1.1\r\nHost: app\r\nContent-Length: 3\r\n\r\nabc", 1,
         lambda a, h, b, t: b == [b"abc"] and a[0].body == b"abc"),
    "request_trailers_are_kept":
        (chunked(b"3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n"), 1,
         lambda a, h, b, t: b == [b"abc"] and t == [["X-Sum: 7"]]),
    "two_pipelined_requests_are_answered_in_order":
        (post(b"Content-Length: 3") + post(b"Content-Length: 3", body=b"xyz"), 2,
         lambda a, h, b, t: [each.body for each in a] == [b"abc", b"xyz"]),
    "a_header_named_by_connection_is_not_passed_on":
        (post(b"Connection: close, X-Secret", b"X-Secret: 1", b"Content-Length: 3"), 1,
         lambda a, h, b, t: "x-secret" not in h[0].lower() and a[0].closes),
    "chunk_extensions_within_reason":
        (chunked(b"3;a=b\r\nabc\r\n0;c\r\n\r\n"), 1, lambda a, h, b, t: b == [b"abc"]),
    "absolute_form":
        (b"GET http://app/abs HTTP/1.1\r\nHost: app\r\n\r\n", 1,
         lambda a, h, b, t: a[0].status == 200),
    "http_1_0_without_host":
        (b"GET /old HTTP/1.0\r\n\r\n", 1, lambda a, h, b, t: a[0].status == 200),
    "the_fencing_headers_of_a_client_are_replaced":
        (post(b"Lease-Fencing-Token: 999", b"Lease-Holder: me", b"lease-name: x",
              b"Lease-Sequence: 1", b"Content-Length: 3"), 1,
         lambda a, h, b, t: "Lease-Fencing-Token: 1\r\n" in h[0] and "999" not in h[0] and
         h[0].lower().count("lease-") == 4 and "Lease-Name: app\r\n" in h[0]),
}


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
@pytest.mark.parametrize("name", ACCEPTED)
def test_unusual_but_right(scene, name, bytewise):
    one, backend = scene
    message, count, good = ACCEPTED[name]
    before = len(backend.heads), len(backend.bodies), len(backend.trailers)
    with Raw(one.gate()) as raw:
        raw.send_bytewise(message) if bytewise else raw.send(message)
        answers = [raw.response() for _ in range(count)]
    bodies = backend.bodies[before[1]:]
    heads = [h for h in backend.heads[before[0]:] if h.split(" ")[1] not in refused_paths()]
    assert [a.status for a in answers] == [200] * count, answers
    assert good(answers, heads, bodies, backend.trailers[before[2]:]), (answers, heads, bodies)


def test_fin_right_after_the_request_is_answered(scene):
    one, _ = scene
    for message in (b"GET /fin HTTP/1.1\r\nHost: app\r\n\r\n", post(b"Content-Length: 3"),
                    b"GET /slow?150 HTTP/1.1\r\nHost: app\r\n\r\n"):
        with Raw(one.gate()) as raw:
            raw.send(message).finish()
            assert raw.response().status == 200, message
            assert raw.end() == "closed"


def test_after_all_vectors_the_gate_serves_and_nothing_is_left_in_flight(scene):
    one, backend = scene
    with Raw(one.gate()) as raw:
        raw.send(post(b"Content-Length: 3"))
        assert raw.response().body == b"abc"
    assert not set(refused_paths(but=BODY_BREAKS)) & set(backend.paths())
    gate = one.status()["gates"][0]
    assert gate["in_flight"] == 0 and gate["held"] == 0
    assert one.events("lease.lost") == []
