"""One `leasehold run`: its configuration, its log, its API, its signal socket, its faults."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

from .logfmt import LogReader
from .process import Process
from .wait import wait_for

def binary():
    return os.path.abspath(os.environ.get("LEASEHOLD_BIN", "build/leasehold"))


def _toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return json.dumps(str(value))


def _table(header, options):
    return "\n".join([header, *(f"{k} = {_toml(v)}" for k, v in options.items()), ""])


class Answer:
    """An HTTP answer of the API."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)


class Sidecar:
    """Made stopped; start() runs it. start() again after an end is a new process of the same node.

    directory: scratch of this instance. node: node id. store: [store] options, or a server of
    the harness or a FaultProxy (then that one), or a path (then the file store there). lease: [[lease]] options
    over the test defaults (one lease "app", ttl 2 s, grace 1 s, hold-off 2 s); `leases` instead for
    several. gates: [[gate]] options each; "listen" is port 0 unless given. more: other tables, as
    {"app": {...}, "node": {...}, "admin": {...}, "signal": {...}}.
    """

    def __init__(self, directory, node, store, gates=(), lease=None, leases=None, more=None,
                 env=None, command=None):
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self.node = node
        self.env = {**getattr(store, "environment", {}), **(env or {})}
        self.config_path = directory / "sidecar.conf"
        self.log_path = directory / "sidecar.log"
        self.log_path.touch()
        self.socket_path = self._short_socket_path()
        self.leases = leases or [{"name": "app", "ttl": "2s", "step_down_grace": "1s",
                                  "step_down_hold_off": "2s", **(lease or {})}]
        more = more or {}
        tables = [_table("[node]", {"id": node, **more.get("node", {})}),
                  _table("[store]", self._store(store))]
        tables += [_table("[[lease]]", each) for each in self.leases]
        tables += [_table("[[gate]]", {"listen": "127.0.0.1:0", **gate}) for gate in gates]
        tables += [_table("[admin]", {"listen": "127.0.0.1:0", **more.get("admin", {})}),
                   _table("[signal]", {"socket": self.socket_path, **more.get("signal", {})})]
        tables += [_table(f"[{name}]", more[name]) for name in ("exec", "app", "hooks", "audit", "log")
                   if name in more]
        self.config_path.write_text("\n".join(tables))
        # With a command: `leasehold exec -- COMMAND`.
        self._verb = ["exec" if command else "run", "-c", self.config_path,
                      *(["--", *command] if command else [])]
        self._log = LogReader(self.log_path)
        self._process = None
        self._life = 0  # index of the first log line of the present process
        self.started_at = 0.0
        self.readers = []

    def _short_socket_path(self):
        """sun_path takes 107 bytes; pytest's directories can be longer, their descriptors not."""
        path = str(self.directory / "s.sock")
        if len(path) <= 100:
            return path
        link = f"/tmp/lh-{os.getpid()}-{id(self):x}"
        os.symlink(self.directory, link)
        self._link = link
        return link + "/s.sock"

    @staticmethod
    def _store(store):
        if isinstance(store, dict):
            return store
        if hasattr(store, "store_options"):
            return store.store_options()
        if isinstance(store, (str, pathlib.Path)):
            return {"type": "file", "file.dir": str(store)}
        raise TypeError(f"no store: {store!r}; it has no store_options()")

    # ---- life ----

    def start(self, ready=True, wrap=()):
        """Runs it. `ready`: waits until API and gates are there. `wrap`: a command before it."""
        self._life = len(self._log.read())
        self.started_at = time.time()
        self._process = Process([*wrap, binary(), *self._verb], self.log_path, env=self.env)
        if ready:
            self.wait_event("sidecar.started", 10)
        return self

    @property
    def process(self):
        return self._process

    @property
    def pid(self):
        return self._process.pid

    def running(self):
        return self._process is not None and self._process.running()

    def stop(self, seconds=15):
        """SIGTERM: steps down, releases, ends. The exit code."""
        return self._process.terminate(seconds)

    def kill9(self):
        """The instant before the signal is returned: nothing was done by it after that."""
        at = time.time()
        self._process.kill9()
        return at

    def freeze(self):
        self._process.freeze()

    def cont(self):
        self._process.cont()

    def close(self):
        for reader in self.readers:
            reader.close()
        if self._process is not None:
            self._process.close()
        if hasattr(self, "_link"):
            os.unlink(self._link)

    # ---- its log ----

    def events(self, name=None, since=0.0, every_life=False, **fields):
        """Log lines of the present process (or of all), in order; `since` is a time."""
        lines = self._log.read()
        return [e for e in (lines if every_life else lines[self._life:])
                if (name is None or e.name == name) and e.at >= since and
                all(e.get(k) == str(v) for k, v in fields.items())]

    def wait_event(self, name, seconds, since=0.0, **fields):
        """The first such line from `since` on; milliseconds are the log's grain."""
        def found():
            events = self.events(name, int(since * 1000) / 1000, **fields)
            if not events and not self.running():
                events = self.events(name, int(since * 1000) / 1000, **fields)
                if not events:
                    raise AssertionError(f"{self.node} ended (exit {self._process.exit_code()}) "
                                         f"without {name}:\n{self.tail()}")
            return events
        return wait_for(found, seconds,
                        lambda: f"{self.node}: event {name} {fields}; log:\n{self.tail()}")[0]

    def last(self, name, **fields):
        events = self.events(name, **fields)
        return events[-1] if events else None

    def tail(self, lines=25):
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    # ---- its surfaces ----

    @property
    def admin_address(self):
        line = self.last("admin.listen") or self.wait_event("admin.listen", 10)
        return _host_port(line["address"])

    @property
    def admin_url(self):
        return "http://%s:%d" % self.admin_address

    def gate(self, name="web"):
        """(host, port) where the gate listens, or last listened (tcp "refuse" shuts its ear)."""
        line = self.last("gate.listen", gate=name) or self.wait_event("gate.listen", 10, gate=name)
        return _host_port(line["address"])

    def admin(self, path, method="GET", body=None, headers=None, timeout=10):
        """An Answer of the API; `body` goes as JSON."""
        connection = http.client.HTTPConnection(*self.admin_address, timeout=timeout)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {
                **({} if data is None else {"Content-Type": "application/json"}),
                **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def status(self, lease="app"):
        """/v1/leases/{name} as a dict."""
        return self.admin(f"/v1/leases/{lease}").json()

    def state(self, lease="app"):
        return self.status(lease)["state"]

    def token(self, lease="app"):
        return int(self.status(lease)["token"] or 0)

    def holding(self, lease="app"):
        return self.status(lease)["holding"]

    def wait_state(self, state, seconds, lease="app"):
        return wait_for(lambda: self.state(lease) == state, seconds,
                        lambda: f"{self.node} is {state}; log:\n{self.tail()}")

    def wait_active(self, seconds=10, since=0.0, lease="app"):
        """Until it holds; the lease.acquired line. `since`: only terms begun after that."""
        event = self.wait_event("lease.acquired", seconds, since, lease=lease)
        return event

    def metrics(self):
        """/metrics as {'name{label="x",...}': value}, exactly as printed."""
        values = {}
        for line in self.admin("/metrics").body.decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                values[name] = float(value)
        return values

    def metric(self, name, **labels):
        """The one sample with these labels among its labels; None if there is none."""
        wanted = [f'{k}="{v}"' for k, v in labels.items()]
        for key, value in self.metrics().items():
            base, _, rest = key.partition("{")
            if base == name and all(w in rest for w in wanted):
                return value
        return None

    def step_down(self, lease="app", take_back=True, wait=True, expected=None, timeout=30):
        """POST step-down with what it holds as precondition; the Answer."""
        if expected is None:
            now = self.status(lease)
            expected = {"expected_node_id": self.node, "expected_token": now["token"]}
        return self.admin(f"/v1/leases/{lease}/step-down", "POST",
                          {**expected, "take_back": take_back, "wait": wait}, timeout=timeout)

    def cli(self, *arguments, timeout=60):
        """`leasehold ARGUMENTS` against this sidecar: subprocess.CompletedProcess, as text."""
        return subprocess.run([binary(), *map(str, arguments), "--admin", self.admin_url],
                              capture_output=True, text=True, timeout=timeout, check=False)

    def signal_reader(self):
        reader = SignalReader(self.socket_path)
        self.readers.append(reader)
        return reader

    def send_signal(self, number=signal.SIGTERM):
        self._process.signal(number)


class SignalReader:
    """A client of the signal socket; keeps every line it is told, with when it came."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self.lines = []  # (time, dict)
        self.ended = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        wait_for(lambda: self.lines or self.ended, 5, "hello on the signal socket")

    def _read(self):
        rest = b""
        try:
            while data := self._socket.recv(65536):
                now = time.time()
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self.lines.append((now, json.loads(line)))
        except OSError:
            pass
        self.ended = True

    def send(self, **op):
        self.send_raw(json.dumps(op).encode() + b"\n")

    def send_raw(self, data):
        self._socket.sendall(data)

    def events(self, name, since=0.0):
        return [(t, l) for t, l in list(self.lines) if l.get("event") == name and t >= since]

    def answers(self, op):
        return [(t, l) for t, l in list(self.lines) if l.get("op") == op]

    def wait_event(self, name, seconds, since=0.0):
        return wait_for(lambda: self.events(name, since), seconds,
                        lambda: f"{name} on the signal socket; told: {self.lines}")[0]

    def wait_answer(self, op, seconds):
        return wait_for(lambda: self.answers(op), seconds,
                        lambda: f"answer to {op}; told: {self.lines}")[-1]

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()
        self._thread.join(5)


def _host_port(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
