"""The scenarios: each takes a scene that was started, and gives a verdict or figures."""

import threading
import time

from harness.raw import Raw, websocket
from harness.sanitizer import has_sanitizers
from harness.sidecar import binary
from harness.wait import wait_for

from .judge import Move, judge
from .scene import LEASE, OTHER_IDS, SLOW_IDS, boot_ns

# From the start of one move to the start of the next.
MOVE_EVERY = 0.4
# The load runs so long before the first move and after the last, for the figures without moves.
STEADY = 1.0
MOVE_LIMIT = 20  # seconds: the grace, the hold-off, and room
# A sidecar that leaves and has nothing in flight is gone so soon after SIGTERM; one with the sanitizers in it looks
# for leaks in its end.
EXIT_LIMIT = 10 if has_sanitizers(binary()) else 2.5


def move(scene):
    """One planned move away from whoever holds, with its precondition; the Move."""
    holder = scene.holder()
    at, asked = time.time(), boot_ns()
    answer = holder.step_down(lease=LEASE, timeout=MOVE_LIMIT)
    assert answer.status == 200, (answer.status, answer.body)
    told = answer.json()
    assert told["outcome"] == "taken_over_by_another_process", told
    opened = wait_for(lambda: [e for s in scene.sidecars if s is not holder
                               for e in s.events("gate.opened", since=int(at * 1000) / 1000)],
                      MOVE_LIMIT, "another's gate opened")[0]
    return Move(asked, boot_ns(), (opened.at - at) * 1000)


def pace(seconds):
    """Lets the load run: time that passes is what is measured, not what is proved."""
    time.sleep(max(0.0, seconds))


def planned_moves(scene, count, say=lambda text: None, every=MOVE_EVERY):
    """`count` moves under the load; the Verdict."""
    load = scene.load()
    pace(STEADY)
    moves = []
    for number in range(count):
        began = time.monotonic()
        moves.append(move(scene))
        if (number + 1) % 10 == 0 or number + 1 == count:
            say(f"  {number + 1}/{count} moves; {load.progress()}")
        pace(began + every - time.monotonic())
    pace(STEADY)
    return judge(scene, load, moves)


class Echo(threading.Thread):
    """One WebSocket through a gate, which says something every 20 ms and wants it back; opened again
    when it is cut, as its clients do. `broken` has what was wrong; a cut is not."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self._address = address
        self._ended = threading.Event()
        self.opened = 0
        self.echoes = 0
        self.broken = []
        self.start()

    def run(self):
        while not self._ended.is_set():
            try:
                with websocket(self._address, host="moves") as tunnel:
                    self.opened += 1
                    self._talk(tunnel)
            except AssertionError as error:  # the handshake was refused, or wrong words came back
                self.broken.append(error)
            except OSError:
                pass  # cut: by the move that it was told of, or with its gate

    def _talk(self, tunnel):
        while not self._ended.wait(0.02):
            word = b"word %d;" % self.echoes
            tunnel.send(word)
            got = tunnel.exactly(len(word))
            assert got == word, (word, got)
            self.echoes += 1

    def close(self):
        self._ended.set()
        self.join(15)


class Download(threading.Thread):
    """One slow download through a gate, paced by the application. `body` and `error` in the end."""

    def __init__(self, address, number, seconds):
        super().__init__(daemon=True)
        self._address, self._id, self._seconds = address, OTHER_IDS + number, seconds
        self.size = 100_000
        self.body = None
        self.error = None
        self.begun = threading.Event()
        self.ended_at = 0
        self.start()

    def run(self):
        try:
            with Raw(self._address, timeout=30) as raw:
                raw.send(f"GET /download?id={self._id}&bytes={self.size}&ms="
                         f"{self._seconds * 1000:.0f} HTTP/1.1\r\nHost: moves\r\n\r\n")
                raw.socket.recv(1, 2)  # MSG_PEEK: the answer has begun
                self.begun.set()
                answer = raw.response()
                assert answer.status == 200, answer
                self.body = answer.body
        except (OSError, AssertionError) as error:
            self.error = error
        self.ended_at = boot_ns()
        self.begun.set()

    def whole(self):
        self.join(30)
        return self.error is None and len(self.body or b"") == self.size


# For moves that wait for a download: what arrives meanwhile is held, 1000 a second for 3 s over two
# gates and room, and tunnels get little of the grace.
LONG = {"lease": {"drain_tunnels": "300ms"}, "gate": {"max_held": 5000}}


def moves_with_long_ones(scene, count, say=lambda text: None, download_seconds=3.0):
    """In a scene made with LONG: moves while one WebSocket talks through each gate and one slow
    download is under way in each move. The Verdict, with `tunnels` and `downloads` beside."""
    load = scene.load()
    tunnels = [scene.keep(Echo(s.gate())) for s in scene.sidecars]
    pace(STEADY)
    moves, downloads = [], []
    for number in range(count):
        download = Download(scene.sidecars[number % 2].gate(), number, download_seconds)
        downloads.append(download)
        assert download.begun.wait(10), "the download did not begin"
        moves.append(move(scene))
        say(f"  {number + 1}/{count} moves; {load.progress()}")
        pace(STEADY)  # what was held is served before the next
    for each in downloads:
        each.join(30)
    for each in tunnels:
        each.close()
    verdict = judge(scene, load, moves)
    verdict.tunnels, verdict.downloads = tunnels, downloads
    for number, each in enumerate(downloads):
        if not each.whole():
            verdict.faults.append(f"download {number + 1} did not complete: {each.error!r}, "
                                  f"{len(each.body or b'')} of {each.size} bytes")
    for each in tunnels:
        if each.broken or each.echoes == 0 or each.opened < 2:
            verdict.faults.append(f"a WebSocket was opened {each.opened} times, echoed "
                                  f"{each.echoes} words: {each.broken[:3]}")
    return verdict


def replace(scene, sidecar, pre_stop=True):
    """What a rollout does to one pod: preStop, SIGTERM, and a new process with the same
    configuration. The Move, and the seconds from SIGTERM to the exit."""
    asked, at = boot_ns(), time.time()
    if pre_stop and sidecar.holding(LEASE):
        done = sidecar.cli("step-down", LEASE, "--wait", "--no-take-back", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "taken_over_by_another_process" in done.stdout, done.stdout
    term = time.monotonic()
    code = sidecar.stop(MOVE_LIMIT)
    took = time.monotonic() - term
    assert code == 0, f"{sidecar.node} ended with {code}; log:\n{sidecar.tail()}"
    sidecar.start()
    scene.wait_warm(sidecar)
    return Move(asked, boot_ns(), (time.time() - at) * 1000), took


def rolling_replacement(scene, rounds, say=lambda text: None, pre_stop=True):
    """Every sidecar is replaced in turn, `rounds` times; without `pre_stop` SIGTERM is all it is
    told. The Verdict, with `exits` (seconds)."""
    load = scene.load()
    pace(STEADY)
    moves, exits = [], []
    for number in range(rounds):
        for sidecar in scene.sidecars:
            one, took = replace(scene, sidecar, pre_stop)
            moves.append(one)
            exits.append(took)
            say(f"  round {number + 1}/{rounds}: {sidecar.node} replaced, its exit took "
                f"{took * 1000:.0f} ms; {load.progress()}")
            pace(MOVE_EVERY / 2)
    pace(STEADY)
    verdict = judge(scene, load, moves)
    verdict.exits = exits
    if max(exits) > EXIT_LIMIT:
        verdict.faults.append(f"a sidecar that left was gone only {max(exits):.2f} s after SIGTERM "
                              f"(limit {EXIT_LIMIT} s)")
    return verdict


# For crashes: a short lease, and time for what is held to outlast a takeover and a silent peer.
CRASHING = {"steady": True, "lease": {"ttl": "2s", "step_down_grace": "1s",
                                      "step_down_hold_off": "1s"}, "gate": {"max_held": 10000}}


def taken_over(scene, former, since):
    """Another than `former` has opened its gate."""
    wait_for(lambda: [e for s in scene.sidecars if s is not former
                      for e in s.events("gate.opened", since=int(since * 1000) / 1000)],
             MOVE_LIMIT, "another takes over")


def crashes(scene, count, say=lambda text: None):
    """In a scene made with CRASHING, while about 50 requests are in flight: the holder is killed and
    started again, then the holder is stopped for longer than its lease and goes on; `count` times.
    The Verdict, with `results`."""
    load = scene.load(first_id=SLOW_IDS)
    pace(STEADY)
    moves = []
    for number in range(count):
        asked, holder = boot_ns(), scene.holder()
        at = holder.kill9()
        taken_over(scene, holder, at)
        scene.wait_warm(holder.start())
        moves.append(Move(asked, boot_ns()))
        pace(STEADY)
        asked, holder = boot_ns(), scene.holder()
        at = time.time()
        holder.freeze()
        taken_over(scene, holder, at)
        pace(STEADY / 2)
        holder.cont()
        holder.wait_event("lease.lost", MOVE_LIMIT, since=at)
        moves.append(Move(asked, boot_ns()))
        say(f"  {number + 1}/{count} killed, {number + 1}/{count} stopped; {load.progress()}")
        pace(STEADY)
    return judge(scene, load, moves, crashes=True)


def first_answer(address, since, seconds):
    """Milliseconds from `since` (time.monotonic()) to the first 200 through a gate."""
    request = b"GET /first HTTP/1.1\r\nHost: moves\r\nConnection: close\r\n\r\n"
    last = "no connection"
    while time.monotonic() - since < seconds:
        try:
            with Raw(address, timeout=seconds) as raw:
                answer = raw.send(request).response()
                if answer.status == 200:
                    return (time.monotonic() - since) * 1000
                last = answer
        except OSError as error:
            last = error
        time.sleep(0.0005)  # not to take the processor from what starts
    raise AssertionError(f"no 200 within {seconds} s: {last!r}")


def restarts(scene, count, say=lambda text: None):
    """kill -9 of the holder and its restart, `count` times: how long from its start to the first 200
    through its gate, in milliseconds. Tokens must rise by one each time."""
    sidecar = scene.sidecars[0]
    token = sidecar.token(LEASE)
    took = []
    for number in range(count):
        sidecar.kill9()
        began = time.monotonic()
        sidecar.start(ready=False)
        took.append(first_answer(sidecar.gate_address, began, 15))
        acquired = sidecar.wait_active(15, lease=LEASE)
        assert acquired.token == token + 1, f"token {acquired.token} after {token}"
        token += 1
        say(f"  restart {number + 1}/{count}: first 200 after {took[-1]:.0f} ms, token {token}")
    return took
