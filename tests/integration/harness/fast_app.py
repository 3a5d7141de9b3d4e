"""An application fast enough that a proxy before it is what is measured: its own process, epoll,
one fixed answer per request. It reads requests without bodies only."""

import sys

from .process import Process
from .wait import wait_for

_PROGRAM = r"""
import select, socket
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n"
listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
listener.setblocking(False)
print("port", listener.getsockname()[1], flush=True)
poll = select.epoll()
poll.register(listener, select.EPOLLIN)
open_ = {}
while True:
    for fd, _ in poll.poll():
        if fd == listener.fileno():
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            open_[connection.fileno()] = [connection, b""]
            poll.register(connection, select.EPOLLIN)
            continue
        entry = open_[fd]
        try:
            data = entry[0].recv(65536)
        except OSError:
            data = b""
        if not data:
            poll.unregister(fd)
            open_.pop(fd)[0].close()
            continue
        data = entry[1] + data
        heads = data.count(b"\r\n\r\n")
        entry[1] = data[data.rfind(b"\r\n\r\n") + 4:] if heads else data
        if heads:
            entry[0].sendall(ANSWER * heads)
"""


class FastApp:
    def __init__(self, out_path):
        self._process = Process([sys.executable, "-c", _PROGRAM], out_path)
        line = wait_for(lambda: [l for l in self._process.output().splitlines()
                                 if l.startswith("port ")], 10, "the application's port")[0]
        self.address = "127.0.0.1:" + line.split()[1]

    def close(self):
        self._process.close()
