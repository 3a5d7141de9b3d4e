"""Starting, reading and ending processes. Each is ended by its process id, and asks the kernel to be
killed when the bench ends, however it ends."""

import ctypes
import os
import pathlib
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1  # prctl(2)
_LIBC = ctypes.CDLL(None, use_errno=True)
_TICKS = os.sysconf("SC_CLK_TCK")


class Failure(Exception):
    """Something needed did not work; the text says what."""


def in_child(cpus):
    """For preexec_fn: ends with us, runs on those CPUs."""
    parent = os.getpid()
    return lambda: _prepare(parent, cpus)


def _prepare(parent, cpus):
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.sched_setaffinity(0, cpus)


class Process:
    def __init__(self, command, log, cpus):
        self.log = pathlib.Path(log)
        self.command = [str(word) for word in command]
        self.started_at = time.monotonic()
        with open(log, "wb") as out:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                preexec_fn=in_child(cpus))
        self.pid = self._process.pid

    def running(self):
        return self._process.poll() is None

    def end(self):
        if self.running():
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()

    def worker(self):
        """The process that serves: the only child of a master, or the process itself."""
        children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return int(children[0]) if children else self.pid


def cpu_seconds(pid):
    """utime + stime of proc(5)'s stat, fields 14 and 15; the name before them may hold spaces."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise Failure(f"process {pid} has no VmRSS; has it ended?")


def free_port():
    """For servers that cannot report the port they chose: bound to 0, closed, used at once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def first_answer(process, port, seconds=10.0):
    """Seconds from the start of `process` to its first 200 on that port."""
    request = b"GET / HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"
    while time.monotonic() - process.started_at < seconds:
        if not process.running():
            break
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(request)
                if connection.recv(64).startswith(b"HTTP/1.1 200"):
                    return time.monotonic() - process.started_at
        except OSError:
            pass
        time.sleep(0.0005)
    raise Failure(f"{process.command[0]} does not answer on port {port}:\n"
                  + process.log.read_text(errors="replace")[-2000:])
