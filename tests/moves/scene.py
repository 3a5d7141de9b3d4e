"""What a run is made of: a store, applications that count, sidecars that forward, and the load."""

import contextlib
import os
import pathlib
import signal
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from harness.process import Process  # noqa: E402
from harness.redis import Redis  # noqa: E402
from harness.sanitizer import has_sanitizers  # noqa: E402
from harness.sidecar import Sidecar, binary  # noqa: E402
from harness.wait import wait_for  # noqa: E402

LEASE = "orders"
# With the sanitizers in them a sidecar and an application take some ten times the work for each request.
RATE = 100 if has_sanitizers(binary()) else 1000
# Ids of requests that the load does not send (downloads) begin here.
OTHER_IDS = 10 ** 12
# Ids of requests that take the application up to 200 ms (work.h).
SLOW_IDS = 10 ** 9
# Below the kernel's ephemeral range (32768 by default), so that no client's own port is in the way
# when a replaced sidecar listens on its port again.
STEADY_PORTS = range(21000, 29000)


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def program(name):
    """tests/<name> of the build folder that the sidecar's program comes from."""
    path = os.path.join(os.path.dirname(binary()), "tests", name)
    if not os.access(path, os.X_OK):
        raise AssertionError(f"the program {path} is missing; build it with: make moves MOVES=1")
    return path


def steady_ports(count):
    """Ports that are free and that the kernel gives to nobody by itself."""
    found = []
    start = os.getpid() * 7 % len(STEADY_PORTS)
    for port in [*STEADY_PORTS[start:], *STEADY_PORTS[:start]]:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                s.bind(("127.0.0.1", port))
                found.append(port)
        if len(found) == count:
            return found
    raise AssertionError(f"no {count} free ports in {STEADY_PORTS}")


class Application:
    """moves_app: logs what it executes to a file that all of a run share."""

    def __init__(self, directory, name, log):
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        out = directory / f"app-{name}.out"
        self.process = Process([program("moves_app"), "--name", name, "--log", log], out)
        line = wait_for(lambda: [l for l in self.process.output().splitlines()
                                 if l.startswith("port ")], 10, f"application {name}: its port")[0]
        self.address = "127.0.0.1:" + line.split()[1]

    def close(self):
        self.process.close()


class Load:
    """moves_load, sending from now on. stop() ends it and returns the path of its record."""

    def __init__(self, directory, addresses, rate=RATE, first_id=1, timeout=30):
        self.record = directory / f"load-{first_id}.txt"
        self.first_id = first_id
        self.rate = rate
        self.began = boot_ns()
        targets = ",".join("%s:%d" % address for address in addresses)
        self.process = Process([program("moves_load"), "--targets", targets, "--rate", rate,
                                "--first-id", first_id, "--timeout", timeout, "--out", self.record],
                               directory / f"load-{first_id}.out")
        self._timeout = timeout

    def progress(self):
        """The last line it printed, one a second."""
        lines = self.process.output().splitlines()
        return lines[-1] if lines else "starting"

    def stop(self):
        self.process.signal(signal.SIGTERM)
        code = self.process.wait(self._timeout + 15)
        assert code == 0, f"moves_load ended with {code}: {self.process.output()[-1000:]}"
        return self.record

    def close(self):
        self.process.close()


class Scene:
    """Sidecars s1..sN, each before an application of its own (a, b, c...). kind: "redis" or "file".
    With `steady` each gate keeps its port when its sidecar is started again."""

    def __init__(self, directory, kind, count=2, lease=None, gate=None, steady=False):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.kind = kind
        self.log = self.directory / "executed.log"
        self.log.touch()
        self._stack = contextlib.ExitStack()
        try:
            self._make(count, lease or {}, gate or {}, steady)
        except BaseException:
            self._stack.close()
            raise

    def _make(self, count, lease, gate, steady):
        self.store = self.keep(Redis(self.directory / "redis")) if self.kind == "redis" \
            else self.directory / "store"
        self.apps = [self.keep(Application(self.directory, name, self.log))
                     for name in "abcdef"[:count]]
        ports = steady_ports(count) if steady else [0] * count
        self.sidecars = [self.keep(self._sidecar(i, ports[i], lease, gate)) for i in range(count)]

    def _sidecar(self, i, port, lease, gate):
        directory = self.directory / f"s{i + 1}"
        address = ("127.0.0.1", port)
        # The program's defaults but for the grace, which only a move that goes wrong would use up.
        sidecar = Sidecar(
            directory, f"s{i + 1}", self.store,
            gates=[{"name": "web", "type": "http", "listen": "%s:%d" % address,
                    "upstream": self.apps[i].address, "standby": "forward",
                    "peer_listen": "127.0.0.1:0", "advertise": "127.0.0.1:0", **gate}],
            leases=[{"name": LEASE, "ttl": "10s", "step_down_grace": "5s", **lease}],
            more={"node": {"state_dir": directory / "state"}})
        sidecar.gate_address = address  # with `steady` known before it listens
        return sidecar

    def keep(self, thing):
        self._stack.callback(thing.close)
        return thing

    def start(self):
        """Starts all; the first one holds and the others have seen it."""
        first, *others = self.sidecars
        first.start()
        first.wait_active(10, lease=LEASE)
        for each in others:
            each.start()
        for each in others:
            self.wait_warm(each)
        return self

    def wait_warm(self, sidecar, seconds=10):
        """It knows of a holder, and its application and store are well: what a rollout waits for."""
        wait_for(lambda: (sidecar.status(LEASE)["record"] or {}).get("process_id") and
                 sidecar.admin("/readyz").status == 200, seconds,
                 lambda: f"{sidecar.node} is a warm standby; log:\n{sidecar.tail()}")

    def load(self, **options):
        return self.keep(Load(self.directory, [s.gate() for s in self.sidecars], **options))

    def holder(self, seconds=15):
        return wait_for(lambda: next((s for s in self.sidecars
                                      if s.running() and s.holding(LEASE)), None),
                        seconds, "somebody holds the lease")

    def terms(self):
        """{token: name of the application behind whoever acquired it}, from the sidecars' logs."""
        return {event.token: app.name for sidecar, app in zip(self.sidecars, self.apps)
                for event in sidecar.events("lease.acquired", every_life=True)}

    def close(self):
        self._stack.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
