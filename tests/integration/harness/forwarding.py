"""Http gates that forward: the usual scenes, and fixtures for the tests that import them."""

import json
import threading
import time

import pytest

from .client import get
from .forger import FakeHolder
from .pair import Pair, http_gate
from .wait import wait_for

TTL = 2.0
HOLD = 2.0  # just above grace, hold-off and a poll: what waits in vain waits so long
LEASE = {"ttl": "2s", "step_down_grace": "500ms", "step_down_hold_off": "1s"}
# Waits of the program end so much later on a busy machine.
LAG = 0.5
# A peer that accepted and says nothing is given up so soon.
PATIENCE = 3.5


def forwarding(application, **more):
    return http_gate(application, **{"standby": "forward", "peer_listen": "127.0.0.1:0",
                                     "advertise": "127.0.0.1:0",
                                     "hold_timeout": f"{HOLD:.0f}s", **more})


def peer_port(sidecar):
    """Where its gate takes other sidecars' traffic."""
    line = sidecar.wait_event("gate.listen", 5, gate="web", msg="listening for other sidecars")
    return int(line["address"].rpartition(":")[2])


def process_id(sidecar):
    return sidecar.admin("/v1/status").json()["node"]["process_id"]


def sentence(answer):
    """The problem's detail; the answer must be one."""
    assert answer.headers["Content-Type"] == "application/problem+json", answer.headers
    return json.loads(answer.body)["detail"]


class Asker:
    """One request in its own thread."""

    def __init__(self, address, path, method="GET", body=None, timeout=20):
        self.answer = None
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        args=(address, path, method, body, timeout))
        self._thread.start()

    def _run(self, address, path, method, body, timeout):
        self.answer = get(address, path, method=method, body=body, timeout=timeout)

    def wait(self, seconds=20):
        self._thread.join(seconds)
        assert self.answer is not None, "no answer"
        return self.answer


@pytest.fixture
def pair(sidecar, app, redis_server):
    """pair(gate options of both, second={of the other}) -> Pair that forwards; .store is its redis."""
    def make(apps=None, second=None, first=None, lease=None, **more):
        store = redis_server()
        apps = apps or (app("a"), app("b"))
        gates = [forwarding(apps[i], **{**more, **((first, second)[i] or {})}) for i in range(2)]
        both = Pair(*(sidecar(f"s{i + 1}", store, gates=[gates[i]], lease={**LEASE, **(lease or {})})
                      for i in range(2)), apps).start()
        both.store = store
        # The route to the holder's gate is known as well.
        wait_for(lambda: get(both.second.gate(), "/warm").ok, 5, "the standby forwards")
        for each in apps:
            getattr(each, "seen", []).clear()
        return both
    return make


@pytest.fixture
def lone(sidecar, app, redis_server, things):
    """lone(address=...) -> a standby whose record says that somebody at that address holds."""
    def make(address, **options):
        store = redis_server()
        backend = app("b")
        one = sidecar("s2", store, gates=[forwarding(backend)], lease=LEASE).start()
        one.wait_active()
        at = time.time()
        forged = FakeHolder(store, address(one) if callable(address) else address, **options)
        things.callback(forged.close)
        one.wait_event("lease.lost", 3, since=at)
        wait_for(lambda: one.status()["state"] == "standby", 3, "it is a standby")
        one.app, one.forged, one.store = backend, forged, store
        return one
    return make
