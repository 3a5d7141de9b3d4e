"""A TCP application that says who it is, and clients that ask it one line over one connection each."""

import socket
import threading
import time
from dataclasses import dataclass

from .app import TcpApp


class TcpLines(TcpApp):
    """Answers each line "x" with "<name> x". Notes every line that it was asked."""

    def __init__(self, name):
        self.name = name
        self.lines = []  # (time, line)
        super().__init__()

    def _serve(self, connection):
        try:
            with connection, connection.makefile("rb") as reader:
                for line in reader:
                    self.lines.append((time.time(), line.strip().decode()))
                    connection.sendall(self.name.encode() + b" " + line)
        except OSError:
            pass


@dataclass
class Asked:
    line: str
    at: float
    by: str = ""       # the application that answered
    after: float = 0.0
    error: str = ""
    port: int = 0      # our own


def ask(address, line, timeout=20):
    """Connects, asks one line, reads the answer and the end. ConnectionRefusedError passes through:
    nobody listened, and nothing was asked."""
    asked = Asked(line, time.time())
    connection = socket.create_connection(address, timeout)
    try:
        with connection, connection.makefile("rb") as reader:
            asked.port = connection.getsockname()[1]
            connection.sendall(line.encode() + b"\n")
            connection.shutdown(socket.SHUT_WR)  # the question's end, which goes through as well
            answer = reader.read().decode()
        by, _, rest = answer.partition(" ")
        asked.by, asked.after = by, time.time() - asked.at
        if rest != line + "\n":
            asked.error = f"answered {answer!r}"
    except OSError as error:
        asked.error = repr(error)
    return asked


class LineClients:
    """Opens `rate` connections a second, in turn at each of the addresses that addresses() gives;
    one that refuses the connect is passed over for the next."""

    def __init__(self, addresses, rate=50):
        self._addresses = addresses
        self._rate = rate
        self._stop = threading.Event()
        self._asking = []
        self.asked = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        number = 0
        while not self._stop.wait(1 / self._rate):
            number += 1
            each = threading.Thread(target=self._one, args=(number,), daemon=True)
            self._asking.append(each)
            each.start()

    def _one(self, number):
        addresses = self._addresses()
        for i in range(len(addresses)):
            try:
                self.asked.append(ask(addresses[(number + i) % len(addresses)], f"line-{number}"))
                return
            except ConnectionRefusedError:
                continue
            except OSError as error:
                self.asked.append(Asked(f"line-{number}", time.time(), error=repr(error)))
                return
        self.asked.append(Asked(f"line-{number}", time.time(), error="refused everywhere"))

    def failed(self):
        return [a for a in list(self.asked) if a.error]

    def close(self):
        self._stop.set()
        self._thread.join(5)
        for each in self._asking:
            each.join(30)
