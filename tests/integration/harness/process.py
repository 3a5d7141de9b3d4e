"""A child process that cannot outlive the test run."""

import os
import signal
import socket
import subprocess

from . import sanitizer


def free_port():
    """A port that was free a moment ago; only for servers that cannot report one. Try again."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """Owns one child by its process id. setpriv execs the command, so the pid is the command's."""

    def __init__(self, argv, out_path, env=None, cwd=None):
        self.argv = [str(a) for a in argv]
        self.out_path = out_path
        with open(out_path, "ab") as out:
            self._popen = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self.argv],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd,
                env=None if env is None else {**os.environ, **env})

    @property
    def pid(self):
        return self._popen.pid

    def running(self):
        return self._popen.poll() is None

    def exit_code(self):
        return self._popen.poll()

    def signal(self, number):
        if self.running():
            os.kill(self.pid, number)

    def freeze(self):
        """SIGSTOP, and waits until the kernel shows it stopped."""
        self.signal(signal.SIGSTOP)
        while self.running() and self.state() != "T":
            pass

    def cont(self):
        self.signal(signal.SIGCONT)

    def kill9(self):
        self.signal(signal.SIGKILL)
        self._popen.wait(10)

    def terminate(self, seconds=10):
        """SIGTERM; the exit code. A process that does not go in time is a failure, and killed."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds):
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(
                f"{self.argv[0]} (pid {self.pid}) did not end within {seconds} s; "
                f"its output: {self.out_path}") from None

    def state(self):
        """The letter of proc(5): R, S, T, Z..."""
        with open(f"/proc/{self.pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0]

    def rss_bytes(self):
        with open(f"/proc/{self.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def output(self):
        with open(self.out_path, errors="replace") as f:
            return f.read()

    def close(self):
        """Ends it where it still runs; a fault that a sanitizer found in it fails the test."""
        if self.running():
            self.kill9()
        else:
            self._popen.wait()
        fault = sanitizer.fault_of(self.exit_code(), self.output())
        assert not fault, f"{self.argv[0]} (pid {self.pid}): {fault}; its output: {self.out_path}"
