"""What chaos happens to: a store, three nodes (a sidecar and an application each), and the hands that
touch them. Every touch is in the journal, which is all that the checker knows of it."""

import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

from harness.memory import MIB, bound
from harness.process import Process
from harness.redis import Redis
from harness.sidecar import Sidecar
from harness.wait import wait_for
from moves.scene import LEASE, program

from .records import Journal, boot_ns, wall_to_boot

NODES = 3
TTLS = (1.0, 1.0, 1.2, 1.5, 2.0)   # seconds; each node draws its own
GRACE, HOLD_OFF = 1.0, 1.0
UNREADY_AFTER = 1.0
FORGED = "f" * 32                  # the process id of a holder that exists only in a record
RSS_GROWTH = 12 * MIB               # of a sidecar, over a run: a thousand held requests, buffers
ASK_TIMEOUT = 2.0                  # a sidecar may be stopped


def wall_clock_library(directory):
    """harness/wall_clock.c, compiled; None where there is no compiler or the program has
    AddressSanitizer, whose library must come first."""
    source = os.path.join(os.path.dirname(__file__), "..", "integration", "harness", "wall_clock.c")
    library = directory / "wall_clock.so"
    done = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source],
                          capture_output=True, check=False)
    return str(library) if done.returncode == 0 and bound(0) == 0 else None


class Touched:
    """A process that may be killed, stopped and started again."""

    def __init__(self, journal, name, what):
        self._journal = journal
        self.name = name
        self._what = what
        self.stopped = False

    def _note(self, what, **fields):
        return self._journal.write(f"{self._what}.{what}", node=self.name, **fields)

    def kill(self, number=signal.SIGKILL):
        if not self.process.running():
            return
        since = boot_ns()
        if number == signal.SIGKILL:
            self.process.kill9()
            self.stopped = False
        else:
            self.process.signal(number)
        self._note("killed" if number == signal.SIGKILL else "told_to_end", since=since)

    def freeze(self):
        if self.process.running() and not self.stopped:
            self._note("stopping")
            self.process.freeze()
            self.stopped = True
            self._note("stopped")

    def cont(self):
        if self.stopped:
            self._note("going_on")
            self.process.cont()
            self.stopped = False


class Application(Touched):
    def __init__(self, scene, name, letter):
        super().__init__(scene.journal, name, "app")
        directory = scene.directory / name
        directory.mkdir(parents=True, exist_ok=True)
        self.unready = directory / "unready"
        ports = scene.roads.ports(name)
        self._argv = [*scene.roads.wrap(name), program("moves_app"), "--name", letter, "--log",
                      scene.directory / "executed.log", "--fence", scene.directory / "fence",
                      "--unready", self.unready, "--port", ports["app"], "--lines", ports["lines"]]
        self._out = directory / "app.out"
        self.process = None
        self.start()

    def start(self):
        if self.process is None or not self.process.running():
            self.process = Process(self._argv, self._out)
            self._note("started")

    def set_unready(self, unready):
        self._note("unready" if unready else "ready")
        if unready:
            self.unready.touch()
        else:
            self.unready.unlink(missing_ok=True)

    def close(self):
        self.process.close()


class Node(Touched):
    """A sidecar. All that is asked of it goes through its signal socket, which no network fault
    reaches."""

    def __init__(self, scene, index, draw, store, program_path=None):
        name = f"s{index + 1}"
        super().__init__(scene.journal, name, "sidecar")
        self._scene = scene
        self.app = Application(scene, name, "abcdef"[index])
        self.ttl = draw.choice(TTLS)
        self._wrap = scene.roads.wrap(name)
        self._program = program_path
        directory = scene.directory / name
        # The last one remembers nothing when it is started again.
        self.remembers = index < NODES - 1
        self.state_dir = directory / "state"
        self._offset = directory / "wall-clock-offset"
        env = {}
        if scene.wall_clock is not None:
            self._offset.write_text("0")
            env = {"LD_PRELOAD": scene.wall_clock, "WALL_CLOCK_OFFSET_FILE": str(self._offset)}
        self.sidecar = Sidecar(
            directory, name, scene.roads.store_for(name, store), gates=self._gates(scene, name),
            leases=[{"name": LEASE, "ttl": f"{round(self.ttl * 1000)}ms",
                     "step_down_grace": f"{GRACE:g}s", "step_down_hold_off": f"{HOLD_OFF:g}s"}],
            more={"node": {"state_dir": self.state_dir} if self.remembers else {},
                  "app": {"check": f"http://127.0.0.1:{scene.roads.ports(name)['app']}/healthz",
                          "interval": "250ms", "timeout": "250ms",
                          "unready_after": f"{UNREADY_AFTER:g}s"},
                  "audit": {"file": directory / "audit.jsonl"}}, env=env)
        self.exits = 0

    @staticmethod
    def _gates(scene, name):
        host, ports = scene.roads.host(name), scene.roads.ports(name)
        at = lambda port: f"{host}:{ports[port]}"  # noqa: E731
        app = f"127.0.0.1:{ports['app']}"
        return [{"name": "web", "type": "http", "listen": at("web"), "upstream": app,
                 "standby": "forward", "peer_listen": at("web_peer"), "advertise": at("web_peer")},
                {"name": "hold", "type": "http", "listen": at("hold"), "upstream": app,
                 "standby": "hold", "on_loss": "finish"},
                {"name": "raw", "type": "tcp", "listen": at("raw"),
                 "upstream": f"127.0.0.1:{ports['lines']}", "standby": scene.raw_standby,
                 "on_loss": "cut", **({"peer_listen": at("raw_peer"), "advertise": at("raw_peer")}
                                      if scene.raw_standby == "forward" else {})}]

    @property
    def process(self):
        return self.sidecar.process

    def start(self, forget=False):
        """Unless it runs. `forget`: without what it remembered of its former life."""
        if self.sidecar.running():
            return
        self.note_exit()
        if forget and self.remembers:
            shutil.rmtree(self.state_dir, ignore_errors=True)
        # In a file that says where its parts begin: the process id of a part is in its first line.
        at = boot_ns()
        with _program(self._program):
            self.sidecar.start(ready=False, wrap=self._wrap)
        self.stopped = False
        self.exits = 1
        self._note("started", at=at, forget=bool(forget), remembers=self.remembers and not forget)

    def set_ttl(self, ttl):
        """Of its next life: somebody changed the configuration."""
        config = self.sidecar.config_path
        config.write_text(re.sub(r'(?m)^ttl = .*$', f'ttl = "{round(ttl * 1000)}ms"',
                                 config.read_text()))
        self._note("ttl", ttl=ttl)

    def note_exit(self):
        """How its process ended, once."""
        process = self.sidecar.process
        if process is not None and not process.running() and self.exits:
            self.exits = 0
            self._note("ended", code=process.exit_code())

    def gate(self, which):
        return self._scene.roads.host(self.name), self._scene.roads.ports(self.name)[which]

    def step_clock(self, seconds):
        if self._scene.wall_clock is not None:
            new = self._offset.with_suffix(".new")
            new.write_text(str(seconds))
            self._note_clock(seconds)
            new.replace(self._offset)

    def _note_clock(self, seconds):
        self._journal.write("clock", node=self.name, seconds=seconds)

    def ask(self, timeout=ASK_TIMEOUT, **op):
        """One op of the signal socket and its answer; None if there was none in time."""
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(timeout)
                s.connect(self.sidecar.socket_path)
                s.sendall(json.dumps({**op, "id": "chaos"}).encode() + b"\n")
                for line in s.makefile("rb"):
                    answer = json.loads(line)
                    if answer.get("id") == "chaos" and "op" in answer:
                        return answer
        except (OSError, ValueError):
            pass
        return None

    def lease(self):
        answer = self.ask(timeout=0.5, op="status") if self.sidecar.running() else None
        return None if answer is None or not answer.get("ok") else answer["leases"][0]

    def close(self):
        self.sidecar.close()
        self.app.close()


@contextlib.contextmanager
def _program(path):
    """Runs another program than the one under test (one that is known to be broken)."""
    before = os.environ.get("LEASEHOLD_BIN")
    if path is not None:
        os.environ["LEASEHOLD_BIN"] = str(path)
    try:
        yield
    finally:
        if path is not None:
            if before is None:
                del os.environ["LEASEHOLD_BIN"]
            else:
                os.environ["LEASEHOLD_BIN"] = before


class RedisStore(Touched):
    """The redis-server. It keeps what it acknowledged (an fsync per write) until it is made to lose
    it; whatever may lose a write is in the journal as store.lost."""

    kind = "redis"

    def __init__(self, scene):
        super().__init__(scene.journal, "store", "store")
        self.redis = scene.keep(Redis(scene.directory / "redis", persist=True,
                                      host=scene.roads.host("store"), wrap=scene.roads.wrap("store")))
        self._files = scene.directory / "redis" / "appendonlydir"
        self._copy = scene.directory / "redis-copy"

    @property
    def process(self):
        return self.redis.process

    def start(self):
        if not self.process.running():
            self.redis.start()
            self._note("started")

    def kill(self, number=signal.SIGKILL):
        self.redis._drop_client()  # noqa: SLF001  its connection dies with the server
        super().kill(number)

    def lose(self, how):
        """Only while it is down: "all", or back to the copy()."""
        self._note("lost", how=how)
        shutil.rmtree(self._files)
        if how == "back" and self._copy.exists():
            shutil.copytree(self._copy, self._files)

    def copy(self):
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._files, self._copy)

    def command(self, *words, loses=None):
        """One command of somebody else's; nothing if the store cannot be asked now."""
        if self.stopped or not self.process.running():
            return None
        if loses:
            self._note("lost", how=loses)
        try:
            return self.redis.cli(*words)
        except Exception as error:  # noqa: BLE001  killed, loading, full: a fault met another
            self.redis._drop_client()  # noqa: SLF001
            self._note("refused", words=words[0], why=str(error)[:200])
            return None
        finally:
            if loses:
                self._note("loss_over")

    def record(self):
        flat = self.command("HGETALL", f"leasehold:lease:{LEASE}") or []
        return dict(zip(flat[::2], flat[1::2]))

    def write_record(self, loses, **fields):
        flat = [str(x) for pair in fields.items() for x in pair]
        self.command("HSET", f"leasehold:lease:{LEASE}", *flat, loses=loses)

    def delete_record(self):
        self.command("DEL", f"leasehold:lease:{LEASE}", loses="record deleted")

    def heal(self):
        self.cont()
        self.start()
        self.command("CONFIG", "SET", "maxmemory", "0")


class FileStore:
    """The file store's directory, and hands in it."""

    kind = "file"

    def __init__(self, scene):
        self.directory = scene.directory / "store"
        self._journal = scene.journal

    @property
    def _path(self):
        return self.directory / "leases" / f"leasehold.{LEASE}.json"

    def record(self):
        try:
            return json.loads(self._path.read_text())
        except (OSError, ValueError):
            return {}

    def write_record(self, loses, **fields):
        lock, record = self._lock(), self.record()
        if lock is not None and record:
            self._journal.write("store.lost", node="store", how=loses)
            new = self._path.with_suffix(".chaos")
            new.write_text(json.dumps({**record, **fields}))
            new.replace(self._path)
            self._journal.write("store.loss_over", node="store")
        if lock is not None:
            lock.close()

    def delete_record(self):
        lock = self._lock()
        if lock is not None:
            self._journal.write("store.lost", node="store", how="record deleted")
            self._path.unlink(missing_ok=True)
            self._journal.write("store.loss_over", node="store")
            lock.close()

    def _lock(self, seconds=0.2):
        """The store's lock, open; None if a sidecar sits in it (one that is stopped may for long)."""
        lock = open(self.directory / "locks" / f"leasehold.{LEASE}.lock", "rb")  # noqa: SIM115
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except OSError:
                if time.monotonic() > end:
                    lock.close()
                    return None
                settle(0.001)

    def seize(self):
        """Somebody sits in the store's lock, as a stopped process would."""
        lock = self._lock()
        return lambda: lock.close() if lock is not None else None

    def heal(self):
        pass


class Scene:
    def __init__(self, directory, store, roads, seed, count=NODES, split=False, programs=None):
        """`split`: the second sidecar has a store of its own, which no sidecar can know: the checker
        must see it. `programs`: {node: another program to run there}."""
        self.directory = directory
        self._stack = contextlib.ExitStack()
        self.journal = Journal(directory / "journal.jsonl")
        self._stack.callback(self.journal.close)
        draw = random.Random(f"{seed} scene")
        self.store_log = None  # a StoreLog, where the store has one
        self.clients = None    # Clients, once they are there
        self.raw_standby = draw.choice(("forward", "hold", "refuse"))
        self.wall_clock = wall_clock_library(directory)
        (directory / "executed.log").touch()
        try:
            self.roads = roads(directory, count, self._stack)
            self.store = RedisStore(self) if store == "redis" else FileStore(self)
            other = self.keep(Redis(directory / "redis-2", persist=True,
                                    host=self.roads.host("store"),
                                    wrap=self.roads.wrap("store"))) if split else None
            one = self.store.redis if store == "redis" else self.store.directory
            self.nodes = [self.keep(Node(self, i, draw, other if split and i == 1 else one,
                                         (programs or {}).get(f"s{i + 1}"))) for i in range(count)]
        except BaseException:
            self._stack.close()
            raise
        self.journal.write("scene", store=store, roads=self.roads.kind, seed=seed, split=split,
                           wall_to_boot=wall_to_boot(), rss_growth_max=bound(RSS_GROWTH), raw_standby=self.raw_standby,
                           nodes={n.name: {"app": "abcdef"[i], "ttl": n.ttl,
                                           "remembers": n.remembers}
                                  for i, n in enumerate(self.nodes)})

    def keep(self, thing):
        self._stack.callback(thing.close)
        return thing

    def start(self):
        for node in self.nodes:
            node.start()
            node.sidecar.wait_event("sidecar.started", 15)
        wait_for(self.holder, 15, "somebody holds the lease at the start")
        return self

    def holder(self):
        return next((n for n in self.nodes if (lease := n.lease()) and lease["holding"]), None)

    def pick(self, target, draw):
        """"holder" (whoever holds now), "standby", "any"."""
        holder = self.holder()
        if target == "holder" and holder is not None:
            return holder
        others = [n for n in self.nodes if n is not holder or target == "any"]
        return draw.choice(others or self.nodes)

    def heal(self):
        """Whatever is still wrong is put right; from here on nothing but the sidecars decides."""
        if self.store_log is not None:
            self.store_log.ambush = False
        self.roads.heal()
        self.store.heal()
        for node in self.nodes:
            node.app.cont()
            node.app.start()
            if node.app.unready.exists():
                node.app.set_unready(False)
            node.cont()
            if not node.sidecar.running():
                node.start()

    def fence(self):
        """(token, process) of the latest that the resource has let through (moves/fence.cc)."""
        data = (self.directory / "fence").read_bytes()
        if len(data) < 64:
            return 0, ""
        token, process = struct.unpack("<Q56s", data)
        return token, process.rstrip(b"\0").decode()

    def rss(self):
        return {n.name: n.process.rss_bytes() for n in self.nodes if n.sidecar.running()}

    def pids(self):
        return {n.name: n.process.pid for n in self.nodes if n.process is not None}

    def close(self):
        self._stack.close()


def settle(seconds):
    """The run's own pace, never a proof."""
    time.sleep(seconds)
