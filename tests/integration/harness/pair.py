"""The usual scene: a store, two applications, two sidecars before them."""

from .wait import wait_for


class Pair:
    """S1 holds, S2 stands by warm (it has seen the holder)."""

    def __init__(self, first, second, apps):
        self.first = first
        self.second = second
        self.apps = apps

    def start(self, seconds=10):
        self.first.start()
        self.first.wait_active(seconds)
        self.second.start()
        self.wait_warm(seconds)
        return self

    def wait_warm(self, seconds=10):
        """S2 has read a record that names S1's present process."""
        process = self.first.admin("/v1/status").json()["node"]["process_id"]
        wait_for(lambda: (self.second.status()["record"] or {}).get("process_id") == process,
                 seconds, "the standby sees the holder")
        return self

    def holders(self):
        return [s for s in (self.first, self.second) if s.running() and s.holding()]


def http_gate(app, **more):
    return {"name": "web", "type": "http", "upstream": app.address, **more}
