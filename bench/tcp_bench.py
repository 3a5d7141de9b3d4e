"""The TCP part: bytes through a tcp gate beside HAProxy in tcp mode, in alternating rounds. The
source sends from memory with sendfile, the sink throws away without copying (MSG_TRUNC of tcp(7)),
so that the proxy is what costs."""

import os
import selectors
import socket
import statistics
import threading
import time
from dataclasses import dataclass, field

from processes import cpu_seconds
from proxies import TCP

NAMES = tuple(TCP)
CONNECTIONS = 4
CHUNK_BYTES = 16 * 1024 * 1024
READ_BYTES_MAX = 1024 * 1024
GIB = 1024 ** 3


@dataclass
class Result:
    rounds: list = field(default_factory=list)  # (bytes, seconds, cpu seconds)

    def cpu_per_gib(self):
        return sum(r[2] for r in self.rounds) / sum(r[0] for r in self.rounds) * GIB

    def cpu_spread(self):
        each = [r[2] / r[0] * GIB for r in self.rounds]
        return min(each), max(each)

    def rate(self):
        return statistics.median(r[0] / r[1] for r in self.rounds)


class Source:
    """Listens, and sends to each connection until it is closed. A child process: it would share
    this interpreter with the sink otherwise."""

    def __init__(self, cpus):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.pid = os.fork()
        if self.pid == 0:
            os.sched_setaffinity(0, cpus)
            self._serve()
        self._listener.close()

    def _serve(self):
        try:
            memory = os.memfd_create("source")
            os.write(memory, b"x" * CHUNK_BYTES)
            parent = os.getppid()
            self._listener.settimeout(1)
            while os.getppid() == parent:  # ends with the bench, however that ends
                try:
                    connection, _ = self._listener.accept()
                except TimeoutError:
                    continue
                connection.settimeout(None)
                threading.Thread(target=self._send, args=(connection, memory),
                                 daemon=True).start()
        finally:
            os._exit(0)

    @staticmethod
    def _send(connection, memory):
        try:
            while True:
                os.sendfile(connection.fileno(), memory, 0, CHUNK_BYTES)
        except OSError:
            connection.close()

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def ready(process, port):
    """Waits until bytes come through; seconds since the start."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                if connection.recv(1):
                    return time.monotonic() - process.started_at
        except OSError:
            pass
        if not process.running() or time.monotonic() - process.started_at > 10:
            raise RuntimeError(process.log.read_text(errors="replace")[-2000:])
        time.sleep(0.001)


def _sink(port, seconds):
    """(bytes, seconds) read over CONNECTIONS connections."""
    selector = selectors.DefaultSelector()
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS)]
    for connection in connections:
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)
    scrap = bytearray(READ_BYTES_MAX)
    total = 0
    begun = time.monotonic()
    while (took := time.monotonic() - begun) < seconds:
        for key, _ in selector.select(0.1):
            total += key.fileobj.recv_into(scrap, READ_BYTES_MAX, socket.MSG_TRUNC)
    for connection in connections:
        connection.close()
    return total, took


def run(make_proxy, rounds, seconds, say):
    """{name: Result}; make_proxy(name) gives a running one."""
    results = {name: Result() for name in NAMES}
    for number in range(rounds):
        for name in NAMES[::-1] if number % 2 else NAMES:
            proxy = make_proxy(name)
            try:
                _sink(proxy.port, 0.5)
                before = cpu_seconds(proxy.pid)
                total, took = _sink(proxy.port, seconds)
                cpu = cpu_seconds(proxy.pid) - before
            finally:
                proxy.end()
            results[name].rounds.append((total, took, cpu))
            say(f"  round {number + 1}/{rounds}  {name:<14} {total / took / GIB:>6.2f} GiB/s  "
                f"{cpu / total * GIB:>6.3f} CPU s per GiB")
    return results
