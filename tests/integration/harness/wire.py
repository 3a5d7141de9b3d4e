"""A stretch of wire between two peers that understands nothing: passes bytes, or swallows them, as a
dead host or a firewall's DROP does, with every connection left standing."""

import socket
import threading


class Wire:
    """Listens on .port; each connection leads to `target` ((host, port), may be set later)."""

    def __init__(self, target=None):
        self.target = target
        self.accepted = 0
        self._swallow = threading.Event()
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def swallow(self, on=True):
        """Nothing passes either way any more; connects succeed and lead nowhere. Off: what has a hole
        in it is reset."""
        if on:
            self._swallow.set()
            return
        self._swallow.clear()
        self._reset_all()

    def _accept(self):
        try:
            while True:
                near, _ = self._listener.accept()
                self.accepted += 1
                with self._lock:
                    self._open.add(near)
                if not self._swallow.is_set():
                    threading.Thread(target=self._join, args=(near,), daemon=True).start()
        except OSError:
            pass  # closed

    def _join(self, near):
        try:
            far = socket.create_connection(self.target, 5)
        except OSError:
            return self._reset(near)
        far.settimeout(None)
        with self._lock:
            self._open.add(far)
        threading.Thread(target=self._carry, args=(far, near), daemon=True).start()
        return self._carry(near, far)

    def _carry(self, source, sink):
        try:
            while data := source.recv(65536):
                if not self._swallow.is_set():
                    sink.sendall(data)
            if not self._swallow.is_set():
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            if not self._swallow.is_set():
                self._reset(sink)

    def _reset(self, sock):
        with self._lock:
            self._open.discard(sock)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        sock.close()

    def _reset_all(self):
        with self._lock:
            everything = list(self._open)
        for each in everything:
            self._reset(each)

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self._reset_all()
        self._thread.join(5)
