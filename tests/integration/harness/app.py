"""The application: small, unmodified, and with a memory. It does not know of leases."""

import http.server
import socket
import threading
import time
from urllib.parse import parse_qs, urlsplit


class Seen:
    """One request as the application got it."""

    def __init__(self, at, app, method, path, headers, body):
        self.at = at
        self.app = app
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body

    @property
    def token(self):
        return int(self.headers.get("Lease-Fencing-Token", 0))

    def __repr__(self):
        return f"<{self.app} {self.at:.3f} {self.method} {self.path} token {self.token}>"


class App:
    """GET /healthz: 200, or 503 while .healthy is False. /slow?ms=N answers after N ms;
    /stream?bytes=N&ms=M sends N bytes over M ms, chunked; /status?code=N; anything else answers
    200 with "NAME TOKEN". POST bodies are read whole. .seen has every request but /healthz."""

    def __init__(self, name="app"):
        self.name = name
        self.healthy = True
        self.seen = []
        self._server = None
        self._thread = None
        self.port = 0
        self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        """Also after stop(): on the same port."""
        assert self._server is None
        self._server = _Server(("127.0.0.1", self.port), _Handler)
        self._server.app = self
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,),
                                        daemon=True)
        self._thread.start()
        return self

    def stop(self):
        """As kill -9 would: it stops listening, and every connection is reset."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.shutdown()
        server.server_close()
        server.cut_all()
        self._thread.join(5)

    close = stop

    def count(self):
        return len(self.seen)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512
    allow_reuse_address = True

    def __init__(self, *arguments):
        self._open = set()
        self._lock = threading.Lock()
        super().__init__(*arguments)

    def get_request(self):
        request, client = super().get_request()
        with self._lock:
            self._open.add(request)
        return request, client

    def shutdown_request(self, request):
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def cut_all(self):
        with self._lock:
            open_now = list(self._open)
        for request in open_now:
            try:  # linger 0: a reset, as the end of a process with unread data gives
                request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                request.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def handle_error(self, request, client_address):
        pass  # connections that tests cut


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536  # head and body in one segment

    def _handle(self):
        at = time.time()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        app = self.server.app
        url = urlsplit(self.path)
        query = {k: int(v[0]) for k, v in parse_qs(url.query).items() if v[0].isdigit()}
        if url.path == "/healthz":
            return self._answer(200 if app.healthy else 503, b"")
        app.seen.append(Seen(at, app.name, self.command, self.path, dict(self.headers), body))
        if url.path == "/slow":
            time.sleep(query.get("ms", 100) / 1000)  # slowness is this path's job, not a proof
        if url.path == "/stream":
            return self._stream(query.get("bytes", 65536), query.get("ms", 100))
        text = f"{app.name} {self.headers.get('Lease-Fencing-Token', '-')}"
        return self._answer(query.get("code", 200) if url.path == "/status" else 200, text.encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _handle

    def _answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def _stream(self, size, ms):
        pieces = 20
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(pieces):
            piece = b"x" * (size // pieces + (size % pieces if i == 0 else 0))
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            time.sleep(ms / 1000 / pieces)
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def log_message(self, *_):
        pass


class TcpApp:
    """A TCP application on loopback, a thread a connection; a subclass says what it answers."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self.accepted = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def _accept(self):
        try:
            while True:
                connection, _ = self._listener.accept()
                self.accepted += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        except OSError:
            pass

    def _serve(self, connection):
        raise NotImplementedError

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self._thread.join(5)


class TcpEcho(TcpApp):
    """Gives every byte back. Counts connections."""

    def _serve(self, connection):
        try:
            while data := connection.recv(65536):
                connection.sendall(data)
        except OSError:
            pass
        connection.close()
