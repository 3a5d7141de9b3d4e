"""The demo's two measuring instruments: a client, and a tap in front of each application."""

import asyncio
import http.client
import re
import threading
import time

PACE = 0.005          # seconds between two requests: 200 a second
GATE_TIMEOUT = 0.25   # how long the client gives a gate that says nothing (a frozen one)
TOKEN = re.compile(rb"\r\nLease-Fencing-Token: (\d+)\r\n")


class Client(threading.Thread):
    """Asks without pause, as a load balancer would: stays with the gate that serves, and tries the
    other when it does not. `served` has (time, name of the gate) of every answer 200."""

    def __init__(self, gates):
        super().__init__(daemon=True)
        self._gates = gates  # [(name, "host:port")]
        self._connections = {}
        self._at = 0
        self._ended = threading.Event()
        self.served = []
        self.refused = 0

    def run(self):
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            due = max(due + PACE, time.monotonic() - PACE)  # what was missed is not made up for
            self._ask()

    def stop(self):
        self._ended.set()
        self.join()

    def _ask(self):
        name, address = self._gates[self._at]
        if self._status(name, address) == 200:
            self.served.append((time.time(), name))
        else:
            self.refused += 1
            self._at = (self._at + 1) % len(self._gates)

    def _status(self, name, address):
        connection = self._connections.get(name)
        if connection is None:
            connection = http.client.HTTPConnection(address, timeout=GATE_TIMEOUT)
            self._connections[name] = connection
        try:
            connection.request("GET", "/")
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            connection.close()
            del self._connections[name]
            return None

    def rate(self, now, seconds=1.0):
        """Requests served a second, lately."""
        recent = [at for at, _ in self.served[-2000:] if at > now - seconds]
        return len(recent) / seconds

    def first_from(self, name, since):
        """When a request was first served by that gate from `since` on, or None."""
        return next((at for at, gate in self.served if gate == name and at >= since), None)

    def longest_gap(self, since):
        """The longest time without an answer, in seconds, that ended after `since`."""
        times = [at for at, _ in self.served]
        return max((b - a for a, b in zip(times, times[1:]) if b >= since), default=0.0)


class Taps(threading.Thread):
    """A wire tap before each application: passes every byte on, and writes down the fencing token
    of each request that reaches it. `seen` has (time, application's name, token) in order."""

    def __init__(self, applications):
        super().__init__(daemon=True)
        self._applications = applications  # [(name, port)]
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.ports = []
        self.seen = []
        self.start()
        self._ready.wait()

    def run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()

    def stop(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join()

    async def _listen(self):
        for name, port in self._applications:
            server = await asyncio.start_server(
                lambda reader, writer, name=name, port=port: self._relay(name, port, reader, writer),
                "127.0.0.1", 0)
            self.ports.append(server.sockets[0].getsockname()[1])

    async def _relay(self, name, port, reader, writer):
        try:
            app_reader, app_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pump(reader, app_writer, lambda data: self._note(name, data)),
                             self._pump(app_reader, writer, lambda data: None))

    @staticmethod
    async def _pump(reader, writer, look):
        try:
            while data := await reader.read(65536):
                look(data)  # a gate writes a request's head in one piece
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    def _note(self, name, data):
        for token in TOKEN.findall(data):
            self.seen.append((time.time(), name, int(token)))

    def tokens(self):
        """The tokens as the applications saw them, each run of one token once."""
        runs = []
        for _, _, token in self.seen:
            if not runs or runs[-1] != token:
                runs.append(token)
        return runs
