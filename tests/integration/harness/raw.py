"""HTTP by hand: exact bytes out, exact bytes in, and what http.client hides (1xx, trailers, how a
connection ended)."""

import os
import socket
import subprocess
import threading
import time

RESET = "reset"
CLOSED = "closed"


class RawResponse:
    def __init__(self, status, headers, body, trailers, interim, started):
        self.status = status
        self.headers = headers      # [(name, value)], as they came
        self.body = body
        self.trailers = trailers    # [(name, value)]
        self.interim = interim      # statuses of 1xx that came before
        self.started = started      # time of its first byte

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None

    @property
    def closes(self):
        return [v.lower() for v in self.all("Connection")] == ["close"]

    def __repr__(self):
        return f"<{self.interim} {self.status} {self.headers} {self.body[:80]!r} {self.trailers}>"


class Raw:
    """One connection. `address` is (host, port) or the path of a Unix socket."""

    def __init__(self, address, timeout=10, receive_buffer=None):
        family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
        self.socket = socket.socket(family)
        self.socket.settimeout(timeout)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(address)
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self._first_byte = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.socket.sendall(data.encode() if isinstance(data, str) else data)
        return self

    def send_bytewise(self, data):
        """Each byte a segment of its own. The peer may end the conversation before the last."""
        try:
            for i in range(len(data)):
                self.socket.sendall(data[i:i + 1])
        except OSError:
            pass
        return self

    def finish(self):
        """FIN: nothing more comes from here."""
        self.socket.shutdown(socket.SHUT_WR)
        return self

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError(f"closed after {self._buffer[-200:]!r}")
        if self._first_byte is None:
            self._first_byte = time.time()
        self._buffer += data

    def _line(self):
        while b"\r\n" not in self._buffer:
            self._more()
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    def _fields(self):
        fields = []
        while line := self._line():
            name, _, value = line.decode("latin-1").partition(":")
            fields.append((name, value.strip()))
        return fields

    def exactly(self, size):
        while len(self._buffer) < size:
            self._more()
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def head(self):
        """The next head: (status, [(name, value)])."""
        if not self._buffer:
            self._first_byte = None
        version, status, *_ = self._line().decode("latin-1").split(" ", 2)
        assert version in ("HTTP/1.1", "HTTP/1.0"), version
        return int(status), self._fields()

    def response(self, method="GET"):
        """The next final response; raises ConnectionError if it does not come whole."""
        interim = []
        status, headers = self.head()
        while 100 <= status < 200 and status != 101:
            interim.append(status)
            status, headers = self.head()
        body, trailers = self._body(method, status, headers)
        return RawResponse(status, headers, body, trailers, interim,
                           self._first_byte or time.time())

    def _body(self, method, status, headers):
        lower = {n.lower(): v for n, v in headers}
        if method == "HEAD" or status in (101, 204, 304):
            return b"", []
        if lower.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int(self._line().partition(b";")[0], 16):
                body += self.exactly(size)
                assert self.exactly(2) == b"\r\n"
            return body, self._fields()
        if "content-length" in lower:
            return self.exactly(int(lower["content-length"])), []
        body = self._buffer
        self._buffer = b""
        while data := self.socket.recv(65536):
            body += data
        return body, []

    def read_some(self):
        """Whatever is there or comes next; b"" at the end."""
        if self._buffer:
            data, self._buffer = self._buffer, b""
            return data
        return self.socket.recv(65536)

    def end(self, seconds=5):
        """How the peer ends it: CLOSED or RESET; unread bytes are thrown away. None: it did not."""
        self.socket.settimeout(seconds)
        try:
            while self.socket.recv(65536):
                pass
            return CLOSED
        except ConnectionResetError:
            return RESET
        except (TimeoutError, socket.timeout):
            return None

    def close(self):
        self.socket.close()


def websocket(address, path="/ws", host="app"):
    """An open WebSocket as a Raw, its handshake done; the answer is in .handshake."""
    raw = Raw(address)
    raw.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
    raw.handshake = raw.response()
    assert raw.handshake.status == 101, raw.handshake
    return raw


class ScriptApp:
    """An application by hand, for what http.server does not do. By path:

    /early    401 on the head alone; the connection stays, and what follows is kept in .after_early
    /continue 100 Continue, then as /echo
    /trailers chunked, with trailers nobody announced
    /big?N    N bytes with a Content-Length; /ws: 101, then gives every byte back
    /slow?N   200 after N ms
    else      200, the body as it came

    .heads has each request's head as text, .bodies its body, .trailers its trailers.
    """

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listener.getsockname()[1]
        self.heads = []
        self.bodies = []
        self.trailers = []
        self.after_early = b""
        self.last_bytes_at = 0.0  # when a tunnel or an answer last carried something
        self._connections = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def paths(self):
        return [h.split(" ")[1] for h in list(self.heads)]

    def _accept(self):
        try:
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._connections.add(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        except OSError:
            pass

    def _serve(self, connection):
        try:
            reader = connection.makefile("rb")
            while self._one(connection, reader):
                pass
        except (OSError, ValueError):
            pass
        connection.close()
        self._connections.discard(connection)

    def _one(self, connection, reader):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = reader.readline()
            if not line:
                return False
            head += line
        text = head.decode("latin-1")
        headers = dict(line.lower().split(": ", 1) for line in text.split("\r\n")[1:] if ": " in line)
        self.heads.append(text)
        path, _, number = text.split(" ")[1].partition("?")
        if path == "/early":
            self.bodies.append(b"")
            connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nwho?")
            self.after_early += reader.read()
            return False
        if path == "/ws":
            return self._tunnel(connection, reader)
        if path == "/continue":
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body, trailers = self._body(reader, headers)
        self.bodies.append(body)
        self.trailers.append(trailers)
        self._answer(connection, path, number, body)
        self.last_bytes_at = time.time()
        return headers.get("connection") != "close"

    def _answer(self, connection, path, number, body):
        if path == "/trailers":
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                               b"3\r\nabc\r\n0\r\nX-Checksum: 900150983cd24fb0\r\nX-Took: 1\r\n\r\n")
            return
        if path == "/slow":
            time.sleep(int(number) / 1000)  # slowness is this path's job, not a proof
        if path == "/big":
            body = bytes(range(256)) * (int(number) // 256)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    @staticmethod
    def _body(reader, headers):
        if "chunked" in headers.get("transfer-encoding", ""):
            body = b""
            while size := int(reader.readline().partition(b";")[0], 16):
                body += ScriptApp._whole(reader, size)
                reader.readline()
            trailers = []
            while line := reader.readline().strip():
                trailers.append(line.decode())
            return body, trailers
        return ScriptApp._whole(reader, int(headers.get("content-length", 0))), []

    @staticmethod
    def _whole(reader, size):
        data = reader.read(size)
        if len(data) < size:
            raise ValueError("the request was cut")
        return data

    def _tunnel(self, connection, reader):
        self.bodies.append(b"")
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                           b"Upgrade: websocket\r\n\r\n")
        while data := reader.read1(65536):
            connection.sendall(data)
            self.last_bytes_at = time.time()
        return False

    def close(self):
        for each in [self._listener, *self._connections]:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._listener.close()
        self._thread.join(5)


class Certificates:
    """An authority and a certificate for localhost and 127.0.0.1, made by openssl."""

    def __init__(self, directory):
        directory.mkdir(parents=True, exist_ok=True)
        self.ca, self.key = directory / "ca.crt", directory / "server.key"
        self.certificate = directory / "server.crt"
        ca_key, request, names = directory / "ca.key", directory / "r.csr", directory / "names"
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self._openssl("req", "-x509", *new_key, "-keyout", ca_key, "-out", self.ca, "-days", "2",
                      "-subj", "/CN=test authority")
        self._openssl("req", *new_key, "-keyout", self.key, "-out", request, "-subj",
                      "/CN=localhost")
        self._openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", ca_key,
                      "-CAcreateserial", "-out", self.certificate, "-days", "2", "-extfile", names)
        os.chmod(self.key, 0o600)

    @staticmethod
    def _openssl(*arguments):
        done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr
