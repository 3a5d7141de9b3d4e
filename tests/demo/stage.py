"""What the demo runs: two stock applications, two sidecars, one lease on the file store.

Everything lives in one fresh temporary directory and on loopback ports that were free. Nothing
outlives this process: every child asks the kernel to be killed when its parent ends, and close()
ends each by its process id.
"""

import calendar
import ctypes
import http.client
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TTL = 2.0  # seconds; short, so that the frozen holder of act 4 is waited out while you watch

CONFIG = """\
[node]
id = "{node}"

[store]
type = "file"
file.dir = "{store}"
# A demo need not survive a power cut; "strict", the default, fsyncs every write.
file.durability = "process_crash_safe"

[[lease]]
name = "app"
ttl = "2s"
step_down_grace = "2s"
step_down_hold_off = "2s"

[[gate]]
name = "web"
type = "http"
listen = "{gate}"
upstream = "{upstream}"

[admin]
listen = "{admin}"
"""

PR_SET_PDEATHSIG = 1  # prctl(2)
_LIBC = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """Something behaved wrongly; the text says what was expected."""


def _die_with_parent(parent):
    """In the child, before exec: SIGKILL for us when the demo ends, however it ends."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def wait_until(what, check, seconds=20.0):
    """The first true value of check(); Failure with the name of what did not happen."""
    end = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"{what} did not happen within {seconds:g} s")
        time.sleep(0.005)


class Child:
    """One process, its output in a file, ended by its process id."""

    def __init__(self, name, command, log, cwd=None):
        parent = os.getpid()
        self.name = name
        self.log = log
        with open(log, "ab") as out:
            # A group of its own: Ctrl-C is for the demo, which then ends everything in order.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd,
                start_new_session=True, preexec_fn=lambda: _die_with_parent(parent))
        self.pid = self._process.pid

    def running(self):
        return self._process.poll() is None

    def stopped(self):
        """Whether SIGSTOP has taken effect: the state after the name in proc(5)'s stat."""
        stat = pathlib.Path(f"/proc/{self.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def exit_code(self):
        return self._process.poll()

    def send(self, number):
        if self.running():
            self._process.send_signal(number)

    def end(self, number=signal.SIGKILL, seconds=5.0):
        self.send(number)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class Application:
    """`python3 -m http.server` with one small page. It knows nothing of leases."""

    def __init__(self, number, directory):
        self.name = f"app {number}"
        root = directory / f"app{number}"
        root.mkdir()
        (root / "index.html").write_text(f"hello from application {number}\n")
        log = directory / f"app{number}.log"
        self.child = Child(self.name, [sys.executable, "-u", "-m", "http.server", "0",
                                       "--bind", "127.0.0.1"], log, cwd=root)
        self.port = int(wait_until(
            f"{self.name} listening", lambda: re.search(r"port (\d+)", log.read_text())).group(1))
        self.address = f"127.0.0.1:{self.port}"


class Sidecar:
    """One `leasehold run`. start() again after an end keeps its ports, so that URLs stay good."""

    def __init__(self, number, directory, binary, upstream):
        self.name = f"S{number}"
        self.binary = binary
        self.config = directory / f"s{number}.conf"
        self.log = directory / f"s{number}.log"
        self._text = {"node": self.name, "store": directory / "store", "upstream": upstream}
        self.gate = self.admin = "127.0.0.1:0"
        self.child = None
        self._lines = []
        self._read_to = 0

    def start(self):
        began = len(self.lines()) if self.log.exists() else 0
        self.config.write_text(CONFIG.format(gate=self.gate, admin=self.admin, **self._text))
        self.child = Child(self.name, [self.binary, "run", "-c", self.config], self.log)

        def started():
            lines = self.lines()[began:]
            if any(line["event"] == "sidecar.started" for line in lines):
                return lines
            if not self.child.running():
                raise Failure(f"{self.name} ended with exit code {self.child.exit_code()}:\n"
                              + self.log.read_text())
            return None

        for line in wait_until(f"{self.name} starting", started):
            if line["event"] == "gate.listen":
                self.gate = line["address"]
            if line["event"] == "admin.listen":
                self.admin = line["address"]
        # The file then says where it really listens, and can be used with -c.
        self.config.write_text(CONFIG.format(gate=self.gate, admin=self.admin, **self._text))

    @property
    def pid(self):
        return self.child.pid

    def lines(self):
        """Its log as dicts, with "at" as seconds since 1970. Reads only what is new."""
        with open(self.log, "rb") as log:
            log.seek(self._read_to)
            whole, newline, _ = log.read().rpartition(b"\n")
        self._read_to += len(whole) + len(newline)
        for text in whole.decode(errors="replace").splitlines():
            fields = dict(word.split("=", 1) for word in shlex.split(text) if "=" in word)
            if "ts" in fields and "event" in fields:
                second, _, millis = fields["ts"].rstrip("Z").partition(".")
                fields["at"] = (calendar.timegm(time.strptime(second, "%Y-%m-%dT%H:%M:%S"))
                                + int(millis) / 1000)
                self._lines.append(fields)
        return self._lines

    def event(self, name, since):
        """The first such log line from `since` on (the log's grain is a millisecond), or None."""
        for line in self.lines():
            if line["event"] == name and line["at"] >= int(since * 1000) / 1000:
                return line
        return None

    def lease(self):
        """GET /v1/leases/app as a dict; None while the process does not answer."""
        connection = http.client.HTTPConnection(self.admin, timeout=0.5)
        try:
            connection.request("GET", "/v1/leases/app")
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()

    def is_in(self, state):
        return (self.lease() or {}).get("state") == state

    def run(self, *arguments):
        """`leasehold ARGUMENTS --admin …` against this sidecar."""
        return subprocess.run([self.binary, *arguments, "--admin", f"http://{self.admin}"],
                              capture_output=True, text=True, timeout=60, check=False)


class Stage:
    """All of it. Use as a context manager."""

    def __init__(self, binary):
        self.binary = os.path.abspath(binary)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="leasehold-demo-"))
        self.applications = []
        self.sidecars = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start_applications(self):
        self.applications = [Application(number, self.directory) for number in (1, 2)]

    def start_sidecars(self, upstreams):
        """One at a time: S1 is to hold first."""
        for number, upstream in enumerate(upstreams, 1):
            sidecar = Sidecar(number, self.directory, self.binary, upstream)
            self.sidecars.append(sidecar)
            sidecar.start()
            if number == 1:
                wait_until("S1 holding", lambda: sidecar.is_in("active"))

    def holder(self):
        """(holder, the other); None while nobody holds."""
        for sidecar, other in (self.sidecars, self.sidecars[::-1]):
            if (sidecar.lease() or {}).get("holding"):
                return sidecar, other
        return None

    def end_sidecars(self):
        """SIGTERM to each: steps down, releases, ends. Their exit codes."""
        codes = []
        for sidecar in self.sidecars:
            if sidecar.child:
                sidecar.child.send(signal.SIGCONT)
                codes.append(sidecar.child.end(signal.SIGTERM, 10))
        return codes

    def close(self):
        for owner in self.sidecars + self.applications:
            if owner.child:
                owner.child.end()
        shutil.rmtree(self.directory, ignore_errors=True)
