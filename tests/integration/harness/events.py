"""Readers of /v1/events: server-sent events over a socket of their own, and `leasehold events`."""

import json
import socket
import subprocess
import threading
import time

from .sidecar import binary
from .wait import wait_for


class EventReader:
    """One connection that reads in a thread; keeps each event as (time, id, name, data)."""

    def __init__(self, address, query="", last_id=None):
        self.events = []
        self.ended = False       # the stream ended in order: its last chunk is there
        self.status = None
        self.body = b""
        self._socket = socket.create_connection(address)
        head = f"GET /v1/events{query} HTTP/1.1\r\nHost: localhost\r\n"
        if last_id is not None:
            head += f"Last-Event-ID: {last_id}\r\n"
        self._socket.sendall(head.encode() + b"\r\n")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        wait_for(lambda: self.status is not None or not self._thread.is_alive(), 5,
                 "an answer of /v1/events")

    def _read(self):
        try:
            file = self._socket.makefile("rb")
            self.status = int(file.readline().split()[1])
            while file.readline() not in (b"\r\n", b""):
                pass
            block = {}
            rest = b""
            while True:
                size = file.readline()
                if not size.endswith(b"\r\n"):
                    return
                chunk = file.read(int(size, 16))
                file.readline()
                if not chunk:
                    self.ended = True
                    return
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if not line and "data" in block:
                        self.events.append((time.time(), block.get("id"), block.get("event"),
                                            json.loads(block["data"])))
                    if not line:
                        block = {}
                        continue
                    field, _, value = line.decode().partition(": ")
                    block[field] = value
        except (OSError, ValueError):
            return

    @property
    def last_id(self):
        return self.events[-1][1] if self.events else None

    def ids(self):
        return [id for _, id, _, _ in self.events]

    def names(self):
        return [name for _, _, name, _ in self.events]

    def wait(self, name, seconds=10, n=1):
        return wait_for(lambda: self.names().count(name) >= n, seconds,
                        lambda: f"{name} on /v1/events; told: {self.names()}")

    def wait_over(self, seconds=10):
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the stream goes on"

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()
        self._thread.join(5)


class EventsCommand:
    """A running `leasehold events --json`: its objects, what it says on standard error."""

    def __init__(self, url, *arguments):
        self.process = subprocess.Popen(
            [binary(), "events", "--json", "--admin", url, *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.events = []
        self.errors = []
        self._threads = [threading.Thread(target=self._read, daemon=True),
                         threading.Thread(target=self._read_errors, daemon=True)]
        for thread in self._threads:
            thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.rstrip("\n"))

    def names(self):
        return [event["event"] for event in self.events]

    def wait(self, name, seconds=10, n=1):
        return wait_for(lambda: self.names().count(name) >= n, seconds,
                        lambda: f"{name} from leasehold events; told: {self.names()}; "
                                f"errors: {self.errors}")

    def end(self, signal_number):
        self.process.send_signal(signal_number)
        return self.finish()

    def finish(self, seconds=5):
        code = self.process.wait(seconds)
        for thread in self._threads:
            thread.join(5)
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
