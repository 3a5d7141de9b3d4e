"""Clients that keep a record of all they saw."""

import http.client
import threading
import time


class Response:
    """One request: sent and received are times; status None if there was no whole answer."""

    def __init__(self, sent, received, status, headers, body, error):
        self.sent = sent
        self.received = received
        self.status = status
        self.headers = headers
        self.body = body
        self.error = error

    @property
    def ok(self):
        return self.status is not None and 200 <= self.status < 300

    @property
    def app(self):
        """Which App answered (its name), "" if none did."""
        return self.body.decode().split(" ")[0] if self.ok and self.body else ""

    @property
    def token(self):
        words = self.body.decode().split(" ") if self.ok and self.body else []
        return int(words[1]) if len(words) == 2 and words[1].isdigit() else 0

    def __repr__(self):
        what = self.status if self.error is None else repr(self.error)
        return f"<{self.sent:.3f}..{self.received:.3f} {what} {self.body[:40]!r}>"


class Client:
    """Sends a request every 1/rate seconds on one keep-alive connection, in its own thread; after an
    error on a new connection. A slow answer delays the next request; it is not skipped."""

    def __init__(self, address, rate=100, path="/", timeout=10, headers=None):
        self.address = address
        self.rate = rate
        self.path = path
        self.timeout = timeout
        self.headers = headers or {}
        self.responses = []
        self.resets = 0  # connections that broke under a request
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        connection = None
        next_at = time.monotonic()
        while not self._stop.is_set():
            self._stop.wait(max(0.0, next_at - time.monotonic()))  # paces; proves nothing
            next_at = max(next_at + 1 / self.rate, time.monotonic() - 1)
            if connection is None:
                connection = http.client.HTTPConnection(*self.address, timeout=self.timeout)
            response = request(connection, self.path, self.headers)
            if response.error is not None:
                self.resets += 1
                connection.close()
                connection = None
            self.responses.append(response)
        if connection is not None:
            connection.close()

    def oks(self):
        return [r for r in list(self.responses) if r.ok]

    def bad(self):
        return [r for r in list(self.responses) if not r.ok]

    def close(self):
        self._stop.set()
        self._thread.join(self.timeout + 5)
        return self.responses

    stop = close


def request(connection, path="/", headers=None, method="GET", body=None):
    """One request on an http.client connection, as a Response."""
    sent = time.time()
    try:
        if connection.sock is None:
            connection.connect()
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        data = response.read()
        return Response(sent, time.time(), response.status, dict(response.getheaders()), data, None)
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        return Response(sent, time.time(), None, {}, b"", error)


def get(address, path="/", headers=None, timeout=10, method="GET", body=None):
    """One request on a connection of its own, as a Response."""
    connection = http.client.HTTPConnection(*address, timeout=timeout)
    try:
        return request(connection, path, headers, method, body)
    finally:
        connection.close()
