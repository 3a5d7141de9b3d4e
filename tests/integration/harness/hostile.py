"""Peers that mean no good, or are broken: garbage, answers that never end, connections cut at the
worst moment."""

import random
import socket
import struct
import threading

SEED = 20260701  # any; fixed, so that a failure comes again


def garbage():
    """name -> bytes that no socket of ours expects."""
    noise = random.Random(SEED)
    return {
        "noise": noise.randbytes(4096),
        "nul": bytes(2000),
        "high_bytes": b"\xff" * 2000,
        "tls_hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + noise.randbytes(500),
        "line_without_end": b"x" * 200000,
        "lines": b"\r\n" * 5000,
        "resp": b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n",
        "half_a_request": b"POST /v1/leases/app/step-down HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le",
        "deep_json": b"[" * 50000 + b"\n",
        "broken_json": b'{"op":"step_down"\n{"op":\n}\n[]\n3\nnull\n"\xff"\n{"op":"x","op":"y"}\n',
        "wrong_types": b'{"op":5}\n{"op":"drained","lease":[],"token":-1}\n'
                       b'{"op":"step_down","expected_token":1e400}\n{"op":"register","lease":{}}\n',
        "header_storm": b"GET / HTTP/1.1\r\nHost: a\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
        "connect": b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n",
    }


def reset(sock):
    """Closes with a reset instead of a FIN."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


# What a server that should be redis may answer to whatever it is sent.
HOSTILE_REPLIES = {
    "noise": random.Random(SEED).randbytes(4096),
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "huge_bulk": b"$999999999999\r\n",
    "huge_array": b"*2147483647\r\n",
    "deep_arrays": b"*1\r\n" * 5000,
    "negative_sizes": b"*-5\r\n$-7\r\n",
    "half_a_reply": b"*2\r\n$4\r\nab",
    "oks_without_end": b"+OK\r\n" * 20000,
    "integers": b":1\r\n" * 10,
    "wrong_types": b"*2\r\n:1\r\n*0\r\n" * 10,
    "resp3": b"%1\r\n+a\r\n+b\r\n>2\r\n+message\r\n+x\r\n",
    "line_without_end": b"+" + b"x" * (1 << 20),
    "null": b"$-1\r\n" * 10,
}


class HostileRedis:
    """Stands before a real redis. .mode: "pass"; "silent" (accepts, never answers); "close"; a name of
    HOSTILE_REPLIES (the answer to everything); or "push:NAME" (passes, but whoever subscribes is sent
    that after the server's own answer). A change of mode ends the connections there are."""

    def __init__(self, port, mode="pass"):
        self._server_port = port
        self._mode = mode
        self._lock = threading.Lock()
        self._sockets = set()
        self.accepted = 0
        self.injected = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def store_options(self):
        return {"type": "redis", "redis.url": self.url}

    @property
    def mode(self):
        return self._mode

    @mode.setter
    def mode(self, mode):
        self._mode = mode
        self._cut()

    def _cut(self):
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self):
        try:
            while True:
                client, _ = self._listener.accept()
                self.accepted += 1
                with self._lock:
                    self._sockets.add(client)
                threading.Thread(target=self._serve, args=(client, self._mode), daemon=True).start()
        except OSError:
            pass

    def _serve(self, client, mode):
        try:
            if mode == "pass" or mode.startswith("push:"):
                self._pass(client, mode.partition(":")[2])
            elif mode != "close":
                while client.recv(65536):
                    if mode != "silent":
                        client.sendall(HOSTILE_REPLIES[mode])
                        self.injected += 1
        except OSError:
            pass
        client.close()

    def _pass(self, client, push):
        server = socket.create_connection(("127.0.0.1", self._server_port), 5)
        server.settimeout(None)
        with self._lock:
            self._sockets.add(server)
        subscribed = threading.Event()

        def answers():
            try:
                while data := server.recv(65536):
                    client.sendall(data)
                    if push and subscribed.is_set():
                        client.sendall(HOSTILE_REPLIES[push])
                        self.injected += 1
            except OSError:
                pass
            client.close()
        threading.Thread(target=answers, daemon=True).start()
        while data := client.recv(65536):
            if b"SUBSCRIBE" in data:
                subscribed.set()
            server.sendall(data)
        server.close()

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self._cut()
        self._thread.join(5)


class CutProxy:
    """Before any server: passes requests; while .cutting, the answer's first byte cuts the connection
    instead: the request was done, and nobody says so. While .swallowing, answers are kept back."""

    def __init__(self, address):
        self._target = address
        self.cutting = False
        self.swallowing = False
        self._sockets = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        try:
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target, 5)
                self._sockets += [client, server]
                for pair in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()
        except OSError:
            pass

    def _pump(self, source, target, answers):
        try:
            while data := source.recv(65536):
                if answers and self.cutting:
                    break
                if answers and self.swallowing:
                    continue
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        for each in [self._listener, *self._sockets]:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()
        self._thread.join(5)
