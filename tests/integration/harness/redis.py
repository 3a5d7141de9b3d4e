"""A real redis-server, started and ended by its test."""

import shlex
import threading

from .process import Process, free_port
from .resp import LeaseCommand, RedisProtocol, RespClient
from .wait import wait_for

START_ATTEMPTS = 5  # a port taken between bind 0 and the server's own bind


class Redis:
    protocol = RedisProtocol()
    environment = protocol.environment

    def __init__(self, directory, *options, persist=False, host="127.0.0.1", wrap=()):
        """`persist`: append-only file with an fsync per write, so that a restart forgets nothing.
        `host`: where it listens. `wrap`: a command before its own."""
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self._options = list(options)
        if host != "127.0.0.1":  # and nothing else would get in
            self._options += ["--protected-mode", "no"]
        self.host = host
        self._wrap = list(wrap)
        if persist:
            self._options += ["--appendonly", "yes", "--appendfsync", "always"]
        self.port = 0
        self._process = None
        self._client = None
        for attempt in range(START_ATTEMPTS):
            self.port = free_port()
            if self._start(fail=attempt == START_ATTEMPTS - 1):
                break

    def _start(self, fail=True):
        self._process = Process(
            [*self._wrap, "redis-server", "--port", self.port, "--bind", self.host, "--save", "",
             "--dir", self.directory, "--loglevel", "warning", *self._options],
            self.directory / "redis.log")
        ended = lambda: not self._process.running()
        wait_for(lambda: ended() or self._answers(), 10, "redis-server answers PING")
        if ended() and fail:
            raise AssertionError("redis-server ended at start: " + self._process.output())
        return not ended()

    def _answers(self):
        try:
            client = RespClient(self.port, host=self.host)
            client.call("PING")
            client.close()
            return True
        except Exception:  # refused, loading: not yet
            return False

    @property
    def url(self):
        return self.protocol.url(self.host, self.port)

    def store_options(self):
        return self.protocol.store_options(self.url)

    @property
    def process(self):
        return self._process

    def cli(self, *words):
        """One command, as words or as one line: cli("GET x"). Raises RespError."""
        if len(words) == 1:
            words = shlex.split(words[0])
        if self._client is None:
            self._client = RespClient(self.port, host=self.host)
        return self._client.call(*words)

    def record(self, name="app"):
        """The lease record as a dict, {} if there is none."""
        flat = self.cli("HGETALL", f"leasehold:lease:{name}")
        return dict(zip(flat[::2], flat[1::2]))

    def write_record(self, name="app", **fields):
        """Somebody else's hand in the store: sets these fields of the record."""
        flat = [x for pair in fields.items() for x in pair]
        self.cli("HSET", f"leasehold:lease:{name}", *flat)

    def delete_record(self, name="app"):
        self.cli("DEL", f"leasehold:lease:{name}")

    def command_calls(self):
        """INFO commandstats as {"get": calls}."""
        calls = {}
        for line in self.cli("INFO", "commandstats").splitlines():
            if line.startswith("cmdstat_"):
                name, _, rest = line[len("cmdstat_"):].partition(":")
                calls[name] = int(rest.split(",")[0].split("=")[1])
        return calls

    def monitor(self):
        return Monitor(self.port)

    def freeze(self):
        self._process.freeze()

    def cont(self):
        self._process.cont()

    def kill(self):
        self._drop_client()
        self._process.kill9()

    def restart(self):
        """Ends it (cleanly if it still runs) and starts it again on the same port."""
        self._drop_client()
        if self._process.running():
            self._process.terminate()
        self._start()

    def start(self):
        self._start()

    def _drop_client(self):
        if self._client is not None:
            self._client.close()
            self._client = None

    def close(self):
        self._drop_client()
        if self._process is not None:
            self._process.close()


class Monitor:
    """MONITOR: every command the server executed, with the server's time. Calls of scripts only:
    what a script does inside (marked "lua") is not a command of a client."""

    def __init__(self, port):
        self._client = RespClient(port, timeout=None)
        self._client.call("MONITOR")
        self._lines = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            while True:
                self._lines.append(self._client.receive())
        except Exception:  # closed: by us or with the server
            pass

    def commands(self, since=0.0):
        """[(time, LeaseCommand)]"""
        found = []
        for line in list(self._lines):
            stamp, _, rest = line.partition(" ")
            where, _, words = rest.partition("] ")
            if float(stamp) < since or where.endswith(" lua"):
                continue
            found.append((float(stamp), LeaseCommand(_words(words))))
        return found

    def lease_writes(self, since=0.0):
        return [(t, c) for t, c in self.commands(since) if c.is_write]

    def lease_reads(self, since=0.0):
        return [(t, c) for t, c in self.commands(since) if c.is_read]

    def close(self):
        try:
            self._client._socket.shutdown(2)
        except OSError:
            pass
        self._client.close()
        self._thread.join(5)


def _words(text):
    """MONITOR quotes each word with \\ escapes; our words hold no quotes of their own but the
    script's text, which tests never read."""
    words = []
    at = 0
    while at < len(text):
        if text[at] != '"':
            at += 1
            continue
        end = at + 1
        while text[end] != '"':
            end += 2 if text[end] == "\\" else 1
        words.append(text[at + 1:end])
        at = end + 1
    return words
