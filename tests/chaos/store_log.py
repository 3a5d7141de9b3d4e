"""What the store carried out, in its own words: MONITOR of redis. Of a script it tells the commands
that really ran, so a write that was refused or in conflict is not among them. While nobody listened
(the server was down) is told too. An independent witness: it knows nothing of sidecars."""

import threading

from harness.redis import _words
from harness.resp import RespClient
from moves.scene import LEASE

from .records import Journal, boot_ns, wall_to_boot

RETRY = 0.005
KEY = f"leasehold:lease:{LEASE}"


class StoreLog:
    def __init__(self, scene, path):
        self._redis = scene.store.redis
        self._journal = Journal(path)
        self._ended = threading.Event()
        self._client = None
        self._nodes = {node.name: node for node in scene.nodes}
        self._highest = 0
        # Stops the next that acquires, in the moment in which the store has granted it: the answer is
        # on its way or in the socket, and will be old when it is read.
        self.ambush = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._ended.is_set():
            try:
                self._client = RespClient(self._redis.port, timeout=None, host=self._redis.host)
                self._client.call("MONITOR")
                self._journal.write("listening")
                while True:
                    self._line(self._client.receive())
            except Exception:  # noqa: BLE001  it went down, or we are at the end
                self._journal.write("deaf")
                self._ended.wait(RETRY)

    def _line(self, line):
        if f'"{KEY}"' not in line or " lua] " not in line:
            return
        stamp, _, rest = line.partition(" ")
        words = _words(rest.partition("] ")[2])
        if words[0].upper() != "HSET":
            return
        fields = dict(zip(words[2::2], words[3::2]))
        token, state = int(fields["token"]), fields["state"]
        if token > self._highest:
            self._highest = token
            if self.ambush and state == "held" and fields["node_id"] in self._nodes:
                self.ambush = False
                self._nodes[fields["node_id"]].freeze()
        self._journal.write("granted", at=int(float(stamp) * 1e9) + wall_to_boot(), heard=boot_ns(),
                            token=token, process=fields["process_id"],
                            state=state, ttl=int(fields["ttl_ms"]) * 1_000_000)

    def close(self):
        self._ended.set()
        if self._client is not None:
            try:
                self._client._socket.shutdown(2)  # noqa: SLF001
            except OSError:
                pass
        self._thread.join(5)
        self._journal.close()
