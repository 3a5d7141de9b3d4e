"""A TCP client that says something every so often and wants it back."""

import socket
import threading
import time


class TcpPinger:
    def __init__(self, address, rate=10, timeout=10):
        self._socket = socket.create_connection(address, timeout)
        self._rate = rate
        self._stop = threading.Event()
        self.answers = []   # (sent, received)
        self.error = None   # the first: an exception, or "closed"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        number = 0
        try:
            while not self._stop.wait(1 / self._rate):
                number += 1
                word = b"ping %d\n" % number
                sent = time.time()
                self._socket.sendall(word)
                got = b""
                while len(got) < len(word):
                    data = self._socket.recv(4096)
                    if not data:
                        self.error = "closed"
                        return
                    got += data
                if got != word:
                    self.error = f"sent {word!r}, got {got!r}"
                    return
                self.answers.append((sent, time.time()))
        except OSError as error:
            self.error = error

    def close(self):
        self._stop.set()
        self._thread.join(15)
        self._socket.close()
