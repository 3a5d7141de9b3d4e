"""Just enough RESP2 to talk to redis and to read what others say to it."""

import socket


class RespParser:
    """Incremental. feed() gives complete values as (value, raw bytes); errors are RespError."""

    def __init__(self):
        self._buffer = b""

    def feed(self, data):
        self._buffer += data
        values = []
        while True:
            try:
                value, end = self._value(0)
            except _Incomplete:
                return values
            values.append((value, self._buffer[:end]))
            self._buffer = self._buffer[end:]

    def _line(self, at):
        end = self._buffer.find(b"\r\n", at)
        if end < 0:
            raise _Incomplete
        return self._buffer[at:end], end + 2

    def _value(self, at):
        line, at = self._line(at)
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode(), at
        if kind == b"-":
            return RespError(rest.decode(errors="replace")), at
        if kind == b":":
            return int(rest), at
        if kind == b"$":
            size = int(rest)
            if size < 0:
                return None, at
            if len(self._buffer) < at + size + 2:
                raise _Incomplete
            return self._buffer[at:at + size].decode(errors="replace"), at + size + 2
        if kind == b"*":
            items = []
            for _ in range(max(int(rest), 0)):
                item, at = self._value(at)
                items.append(item)
            return items, at
        raise AssertionError(f"not RESP: {line!r}")


class _Incomplete(Exception):
    pass


class RespError(Exception):
    pass


def encode(*words):
    out = b"*%d\r\n" % len(words)
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        out += b"$%d\r\n%s\r\n" % (len(data), data)
    return out


class RespClient:
    """One connection of the test's own to redis."""

    def __init__(self, port, timeout=5, host="127.0.0.1"):
        self._socket = socket.create_connection((host, port), timeout)
        self._parser = RespParser()
        self._ready = []

    def send(self, *words):
        self._socket.sendall(encode(*words))

    def receive(self):
        while not self._ready:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("redis closed the connection")
            self._ready += self._parser.feed(data)
        return self._ready.pop(0)[0]

    def call(self, *words):
        self.send(*words)
        value = self.receive()
        if isinstance(value, RespError):
            raise value
        return value

    def close(self):
        self._socket.close()


class LeaseCommand:
    """A command of the sidecar's redis adapter, as seen on the wire (src/store/redis_scripts.cc)."""

    def __init__(self, words):
        self.words = words
        name = words[0].upper() if words else ""
        script = name in ("EVAL", "EVALSHA") and len(words) >= 4
        self.is_read = script and len(words) == 4
        self.is_write = script and len(words) > 6
        self.is_probe = name == "SET"
        self.name = name
        self.expected_version = words[4] if self.is_write else ""
        self.record = dict(zip(words[6::2], words[7::2])) if self.is_write else {}

    @property
    def token(self):
        return int(self.record.get("token", 0))

    @property
    def process_id(self):
        return self.record.get("process_id", "")

    @property
    def state(self):
        return self.record.get("state", "")


class RedisProtocol:
    """What a FaultProxy must know of redis."""

    environment = {}
    parser = RespParser
    placeholder = encode("ECHO", "x")
    pushes = True
    ends_in_order = False  # redis closes nothing by itself
    # Each is an answer to a write that nobody could expect.
    unknown_answers = {"error": b"-WEIRD nobody knows this error\r\n", "other_kind": b":42\r\n",
                       "nothing": b"$-1\r\n"}

    @staticmethod
    def url(host, port):
        return f"redis://{host}:{port}/0"

    @staticmethod
    def store_options(url):
        return {"type": "redis", "redis.url": url}

    @staticmethod
    def command(value):
        return LeaseCommand([str(word) for word in value])

    @staticmethod
    def is_subscription(command):
        return command.name.endswith("SUBSCRIBE")
