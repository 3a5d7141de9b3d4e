"""Those who use the gates beside moves_load: raw TCP, and people on slow lines. Each request's sending,
end and result is in clients.jsonl, whatever became of it."""

import random
import socket
import threading
import time

from .records import Journal, boot_ns

# Ids, so that each log line tells who asked (moves_load has those from moves.scene.SLOW_IDS on).
HOLD_IDS = 2 * 10 ** 9    # moves_load at the gate "hold"
SLOW_CLIENT_IDS = 3 * 10 ** 9
LINE_IDS = 4 * 10 ** 9
RAW_EVERY = 0.08          # seconds between two connections
SLOW_EVERY = 0.7
BURST = 40
LINES_MAX = 4             # asked over one connection
TIMEOUT = 10.0


class Clients:
    """Both kinds; close() waits for what is under way."""

    def __init__(self, scene, seed):
        self._scene = scene
        self._journal = Journal(scene.directory / "clients.jsonl")
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._ids = {"line": LINE_IDS, "slow": SLOW_CLIENT_IDS}
        self._under_way = set()
        self._threads = [threading.Thread(target=self._run, daemon=True, args=(
            what, every, random.Random(f"{seed} {what}"))) for what, every in (
                (self._raw, RAW_EVERY), (self._slow, SLOW_EVERY))]
        for thread in self._threads:
            thread.start()

    def close(self):
        self._ended.set()
        for thread in self._threads:
            thread.join(5)
        for thread in list(self._under_way):
            thread.join(TIMEOUT * 2)
        self._journal.close()

    def _run(self, what, every, chances):
        while not self._ended.wait(every):
            # Drawn here, so that the order of threads changes nothing.
            thread = threading.Thread(target=self._one, daemon=True,
                                      args=(what, random.Random(chances.random())))
            self._under_way.add(thread)
            thread.start()

    def _one(self, what, chances):
        try:
            what(chances)
        finally:
            self._under_way.discard(threading.current_thread())

    def _next(self, kind):
        with self._lock:
            self._ids[kind] += 1
            return self._ids[kind]

    def _connect(self, which, chances):
        """At any node's gate; one that refuses is passed over. (socket, node) or (None, why)."""
        nodes = chances.sample(self._scene.nodes, len(self._scene.nodes))
        why = "refused"
        for node in nodes:
            try:
                return socket.create_connection(node.gate(which), TIMEOUT / 2), node.name
            except ConnectionRefusedError:
                continue
            except OSError as error:  # nobody there; nothing was asked
                why = type(error).__name__
        return None, why

    def _note(self, kind, number, gate, sent, result, app=""):
        self._journal.write("client", kind=kind, id=number, gate=gate, sent=sent, done=boot_ns(),
                            result=result, app=app)

    # ---- raw TCP: one line after the other, each to be executed once ----

    def _raw(self, chances):
        connection, gate = self._connect("raw", chances)
        if connection is None:
            return self._note("line", self._next("line"), "", 0, gate)
        with connection, connection.makefile("rb") as reader:
            connection.settimeout(TIMEOUT)
            for _ in range(chances.randint(1, LINES_MAX)):
                number = self._next("line")
                sent = boot_ns()
                try:
                    connection.sendall(b"%d\n" % number)
                    answer = reader.readline().decode().split()
                except OSError as error:
                    return self._note("line", number, gate, sent, type(error).__name__)
                if not answer:
                    return self._note("line", number, gate, sent, "closed")
                right = len(answer) == 2 and answer[1] == str(number)
                self._note("line", number, gate, sent, "ok" if right else f"wrong {answer}",
                           answer[0] if right else "")
                if self._ended.wait(chances.uniform(0, 0.5)):
                    break
        return None

    # ---- many at once: whoever is stopped now is stopped in the middle of them ----

    def burst(self, node, chances):
        """Sends BURST requests over as many connections to one gate and returns at once; what becomes
        of them is noted later."""
        asked = []
        for _ in range(BURST):
            try:
                connection = socket.create_connection(node.gate("web"), 0.3)
            except OSError:
                break  # it is stopped, or cut off, already
            number = self._next("slow")
            head = (f"POST /execute?id={number}&body=0&answer=100 HTTP/1.1\r\nHost: burst\r\n"
                    "Content-Length: 0\r\nConnection: close\r\n\r\n").encode()
            asked.append((connection, number, head))
        chances.shuffle(asked)
        sent = boot_ns()
        for connection, _, head in asked:
            connection.sendall(head)
        for each in asked:
            thread = threading.Thread(target=self._take, args=(*each[:2], node.name, sent),
                                      daemon=True)
            self._under_way.add(thread)
            thread.start()

    def _take(self, connection, number, gate, sent):
        with connection:
            connection.settimeout(TIMEOUT)
            try:
                result, app = _read_slowly(connection, None)
            except OSError as error:
                result, app = type(error).__name__, ""
        self._note("slow", number, gate, sent, result, app)
        self._under_way.discard(threading.current_thread())

    # ---- slow lines: a head in drops, an answer read in sips ----

    def _slow(self, chances):
        connection, gate = self._connect("web", chances)
        number = self._next("slow")
        if connection is None:
            return self._note("slow", number, "", 0, gate)
        head = (f"POST /execute?id={number}&body=0&answer=200000&ms=300 HTTP/1.1\r\nHost: slow\r\n"
                "Content-Length: 0\r\nConnection: close\r\n\r\n").encode()
        sent = boot_ns()
        with connection:
            connection.settimeout(TIMEOUT)
            try:
                for at in range(0, len(head), 40):
                    connection.sendall(head[at:at + 40])
                    time.sleep(chances.uniform(0, 0.2))  # the slowness itself
                result, app = _read_slowly(connection, chances)
            except OSError as error:
                result, app = type(error).__name__, ""
        return self._note("slow", number, gate, sent, result, app)


def _read_slowly(connection, chances):
    got = bytearray()
    while data := connection.recv(32768):
        got += data
        if chances is not None:
            time.sleep(chances.uniform(0, 0.1))
    head, _, body = bytes(got).partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if not lines[0].startswith("HTTP/1.1 "):
        return "closed", ""
    fields = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
    status = int(lines[0].split()[1])
    if status != 200:
        kind = body.decode("latin-1").partition("urn:leasehold:problem:")[2].partition('"')[0]
        return f"status_{status}" + (f"/{kind}" if kind else ""), ""
    if len(body) != int(fields["content-length"]):
        return "cut", ""
    return "ok", fields.get("app-name", "")
