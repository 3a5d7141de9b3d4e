"""HTTP/1.1 messages out of a byte stream, for what stands between a client and a service: whole
messages with bodies of a known length or in chunks, as AWS' clients and servers send them."""

import json


class HttpMessage:
    """A request (method, target) or an answer (status). Header names are in lower case."""

    def __init__(self, start, headers, body):
        self.headers = headers
        self.body = body
        first, _, rest = start.partition(" ")
        self.is_answer = first.startswith("HTTP/")
        self.status = int(rest.split(" ")[0]) if self.is_answer else 0
        self.method = "" if self.is_answer else first
        self.target = "" if self.is_answer else rest.rpartition(" ")[0]

    def json(self):
        """The body as a dict; {} where it is none."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def ends_connection(self):
        return self.headers.get("connection", "").lower() == "close"

    def __repr__(self):
        return f"<{self.status or self.method} {self.target} {self.body[:120]!r}>"


class _Incomplete(Exception):
    pass


class HttpParser:
    """Incremental. feed() gives complete messages as (HttpMessage, raw bytes)."""

    def __init__(self):
        self._buffer = b""

    def feed(self, data):
        self._buffer += data
        messages = []
        while self._buffer:
            try:
                message, end = self._message()
            except _Incomplete:
                break
            messages.append((message, self._buffer[:end]))
            self._buffer = self._buffer[end:]
        return messages

    def _find(self, what, at):
        end = self._buffer.find(what, at)
        if end < 0:
            raise _Incomplete
        return end

    def _message(self):
        head_end = self._find(b"\r\n\r\n", 0)
        start, *lines = self._buffer[:head_end].decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        at = head_end + 4
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body, at = self._chunks(at)
        else:
            size = int(headers.get("content-length", 0))
            body, at = self._exactly(at, size), at + size
        return HttpMessage(start, headers, body), at

    def _exactly(self, at, size):
        if len(self._buffer) < at + size:
            raise _Incomplete
        return self._buffer[at:at + size]

    def _chunks(self, at):
        body = b""
        while True:
            line_end = self._find(b"\r\n", at)
            size = int(self._buffer[at:line_end].split(b";")[0], 16)
            at = line_end + 2
            if size == 0:
                return body, self._find(b"\r\n", at) + 2   # no trailers: nobody sends any here
            body += self._exactly(at, size)
            at += size + 2


def answer(status, body, headers=()):
    """The bytes of an answer; a body that is no bytes goes as JSON."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Fault", f"Content-Length: {len(body)}",
             *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
