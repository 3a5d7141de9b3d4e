"""What stamper.c wrote: who lived when, on the boot clock."""

import os
import pathlib
import struct
import subprocess
import time
from dataclasses import dataclass

from .wait import wait_for


def boot_now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_of(wall):
    """The boot-clock time of a wall-clock time of this run (both in seconds)."""
    return wall - time.time() + boot_now()


def compile_stamper(directory):
    program = directory / "stamper"
    source = pathlib.Path(__file__).parent / "stamper.c"
    subprocess.run(["cc", "-O1", "-Wall", "-Werror", "-o", program, source], check=True)
    return program


@dataclass(frozen=True)
class Life:
    role: str
    token: int
    pid: int
    first: float
    last: float

    def alive(self):
        try:
            stat = pathlib.Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] not in "ZX"


class Stamps:
    """One directory for both sides: tokens tell the terms apart."""

    def __init__(self, directory, program):
        self.directory = directory
        self.directory.mkdir()
        self._program = program

    def command(self, role="main", *more):
        return [str(self._program), str(self.directory), role, *more]

    def shell(self, script):
        """`@role` in the script is a stamper in that role."""
        words = [" ".join(self.command(w[1:])) if w.startswith("@") else w for w in script.split()]
        return ["sh", "-c", " ".join(words)]

    def lives(self, token=None, role=None):
        found = []
        for path in self.directory.iterdir():
            its_role, its_token, pid = path.name.rsplit(".", 2)
            data = path.read_bytes()
            if len(data) == 16 and (stamps := struct.unpack("qq", data))[0]:
                found.append(Life(its_role, int(its_token), int(pid), stamps[0] / 1e9,
                                  stamps[1] / 1e9))
        return sorted((life for life in found if token in (None, life.token)
                       and role in (None, life.role)), key=lambda life: life.first)

    def wait(self, token, seconds, roles=("main",)):
        """Until every one of these roles has lived under this token."""
        return wait_for(lambda: (found := self.lives(token)) and
                        set(roles) <= {life.role for life in found} and found, seconds,
                        lambda: f"{roles} under token {token}; seen: {self.lives()}")

    def gap(self, token):
        """Seconds from the last breath under older tokens to the first one under this; all of them
        must be dead by then."""
        before = [life for life in self.lives() if life.token < token]
        alive = [life for life in before if life.alive()]
        assert not alive, f"{alive} live on beside token {token}"
        return min(life.first for life in self.lives(token)) - max(life.last for life in before)


def kill_pid(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
