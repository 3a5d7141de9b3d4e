"""Somebody else's hand in the store: a holder that exists only in the record."""

import threading
import time

from .wait import wait_for

FORGED_TOKEN = 50


class FakeHolder:
    """Keeps writing a `held` record whose gate "web" is said to be at `address`, as a live holder
    renews. `process_id`: whom requests are then meant for. stop() lets the record go stale."""

    def __init__(self, store, address, process_id="f" * 32, lease="app", token=FORGED_TOKEN):
        self._store = store
        self._lease = lease
        self.fields = {"token": token, "node_id": "forged", "process_id": process_id,
                       "state": "held", "peer:web": address}
        self._beat = 1000
        self._ended = threading.Event()
        self.stopped_at = 0.0
        wait_for(lambda: store.record(lease), 5, "a record to forge")
        self._write()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _write(self):
        self._beat += 1
        self._store.write_record(self._lease, beat=self._beat, **self.fields)

    def _run(self):
        while not self._ended.wait(0.2):
            self._write()

    def stop(self):
        self._ended.set()
        self._thread.join(5)
        self.stopped_at = time.time()

    close = stop
