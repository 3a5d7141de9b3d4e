"""What happens, told: /v1/events and `leasehold events` (DESIGN 2.4, 5)."""

import signal
import socket
import subprocess
import time

import pytest

from harness.client import get
from harness.events import EventReader, EventsCommand
from harness.measured import measured
from harness.memory import MIB, bound
from harness.pair import Pair, http_gate
from harness.raw import Raw
from harness.sidecar import binary
from harness.wait import wait_for


@pytest.fixture
def reader(things):
    def make(sidecar, *arguments, **options):
        one = EventReader(sidecar.admin_address, *arguments, **options)
        things.callback(one.close)
        return one
    return make


@pytest.fixture
def command(things):
    def make(sidecar, *arguments):
        one = EventsCommand(sidecar.admin_url, *arguments)
        things.callback(one.close)
        return one
    return make


def without_gaps(ids):
    """Event ids of one process, each once and in order."""
    numbers = [int(id.rpartition(".")[2]) for id in ids]
    return (len({id.rpartition(".")[0] for id in ids}) == 1 and
            numbers == list(range(numbers[0], numbers[0] + len(numbers))))


def test_resumed_readers_see_each_event_once_over_a_step_down_and_a_takeover(
        redis_server, sidecar, app, reader):
    store = redis_server()
    apps = (app("a"), app("b"))
    both = Pair(*(sidecar(f"s{i + 1}", store, gates=[http_gate(apps[i])]) for i in range(2)),
                apps).start()
    first, second = both.first, both.second
    whole = {s.node: reader(s, "?since=start") for s in (first, second)}
    pieces = {s.node: [reader(s, "?since=start")] for s in (first, second)}
    for s in (first, second):
        wait_for(lambda s=s: pieces[s.node][0].events, 5, "history")

    def resume(s):
        """Cut the connection and connect again from where it was."""
        old = pieces[s.node][-1]
        old.close()
        pieces[s.node].append(reader(s, "?since=start",
                                     last_id=old.last_id or pieces[s.node][-2].last_id))
    assert first.step_down().json()["outcome"] == "taken_over_by_another_process"
    for s in (first, second):
        resume(s)
    second.wait_active()
    wait_for(lambda: first.state() == "standby" and (first.status()["record"] or {})
             .get("node_id") == "s2", 10, "s1 observes s2")
    resume(second)
    second.kill9()
    first.wait_active(10, since=second.last("lease.acquired").at)
    resume(first)
    whole["s1"].wait("lease.acquired", 10, n=2)
    wait_for(lambda: pieces["s1"][-1].ids()[-1:] == whole["s1"].ids()[-1:] or
             sum((p.ids() for p in pieces["s1"]), [])[-1] == whole["s1"].ids()[-1], 5,
             "the resumed reader has the last event")
    for s in (first, second):
        resumed = sum((p.ids() for p in pieces[s.node]), [])
        assert without_gaps(whole[s.node].ids())
        assert without_gaps(resumed), resumed
        assert resumed == whole[s.node].ids()[:len(resumed)]
    assert "missed" not in whole["s1"].names() + sum((p.names() for p in pieces["s1"]), [])
    # What is streamed is what is logged, in its order.
    logged = [(e.name, e.get("token")) for e in first.events() if
              e.name.startswith("lease.")]
    told = [(name, data["token"]) for _, _, name, data in whole["s1"].events
            if name.startswith("lease.")]
    assert [name for name, _ in told] == [name for name, _ in logged]


def test_the_stream_ends_in_order_after_the_last_event_when_the_sidecar_stops(
        tmp_path, sidecar, app, reader):
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"))]).start()
    one.wait_active()
    told = reader(one)
    assert told.names() == [] or told.names()[0] == "hello"
    told.wait("hello")
    assert told.events[0][3]["leases"][0]["holding"] is True
    assert one.stop() == 0
    told.wait_over()
    assert told.ended
    assert "lease.released" in told.names()
    assert told.names()[-1] in ("lease.released", "gate.closed")


def test_leasehold_events_goes_on_when_the_sidecar_restarts(tmp_path, sidecar, app, command):
    address = tmp_path / "api.sock"
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"))],
                  more={"admin": {"listen": f"unix:{address}"}}).start()
    one.wait_event("lease.acquired", 10)
    told = EventsCommand(f"unix:{address}")
    try:
        told.wait("hello")
        old = told.events[0]["process_id"]
        assert one.stop() == 0
        told.wait("lease.released")
        wait_for(lambda: told.errors, 5, "the break is told")
        assert "connecting again" in told.errors[0]
        one.start()
        told.wait("lease.acquired", 15)
        missed = [e for e in told.events if e["event"] == "missed"]
        assert [m["why"] for m in missed] == ["process_changed"]
        assert missed[0]["last_event_id"].startswith(old + ".")
        new = [e["event_id"] for e in told.events if not e["event_id"].startswith(old)]
        assert without_gaps(new) and new[0].endswith(".0")
        ids = [e["event_id"] for e in told.events]
        assert len(ids) == len(set(ids))
        assert any("connected to" in line for line in told.errors)
        one.kill9()
        one.start()
        wait_for(lambda: [e["event"] for e in told.events].count("missed") == 2, 15,
                 lambda: f"the second restart is told: {told.names()}")
        assert told.end(signal.SIGINT) == 0
    finally:
        told.close()


# A hello of so many leases is more than kernels take for a reader that does not read.
LEASES = [{"name": f"lease-{i:03}", "ttl": "20s"} for i in range(150)]
# Unread bytes: 20 s by the connection's user time-out, or two heartbeats of 15 s.
DROPPED_WITHIN = 35


def free_places(one):
    """How many more readers are let in; they leave again."""
    readers = []
    try:
        while len(readers) < 32:
            readers.append(EventReader(one.admin_address))
            if readers[-1].status != 200:
                return len(readers) - 1
        return 32
    finally:
        for each in readers:
            each.close()


def test_readers_that_never_read_are_dropped_cost_little_memory_and_others_are_served(
        tmp_path, sidecar, reader):
    one = sidecar("s1", tmp_path / "store", leases=LEASES).start()
    wait_for(lambda: all(lease["holding"] for lease in one.admin("/v1/leases").json()["leases"]),
             20, "all leases held")
    good = reader(one, "?lease=lease-007")
    good.wait("hello")
    one.admin("/v1/events?follow=false")  # what a hello costs while it is put together
    before = one.process.rss_bytes()
    sleepers = []
    try:
        for _ in range(31):
            sleeper = socket.socket()
            sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sleeper.connect(one.admin_address)
            sleeper.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            sleepers.append(sleeper)
        wait_for(lambda: one.admin("/v1/events?follow=false").status == 503, 5, "no place is left")
        hello = len(one.admin("/v1/leases").body)
        growth = one.process.rss_bytes() - before
        # What each has been told once, and nothing that comes later.
        assert growth < bound(31 * hello + 2 * MIB), f"{growth / MIB:.1f} MiB; a hello is {hello}"
        for path in ("/livez", "/readyz", "/v1/status", "/metrics"):
            assert one.admin(path).status == 200
        begin = time.time()
        for term in (1, 2):
            assert one.step_down("lease-007", wait=False).status == 202
            good.wait("lease.draining", 5, n=term)
            good.wait("lease.acquired", 10, n=term)
        assert one.process.rss_bytes() - before < bound(31 * hello + 2 * MIB)
        wait_for(lambda: free_places(one) == 31, DROPPED_WITHIN,
                 "the places of all who do not read are free again")
        measured(f"readers of /v1/events that never read: dropped {time.time() - begin:.0f} s after "
                 f"others were served; {growth / MIB:.1f} MiB for 31 of them")
        assert one.step_down("lease-007", wait=False).status == 202
        good.wait("lease.draining", 5, n=3)
    finally:
        for sleeper in sleepers:
            sleeper.close()


def test_watchers_in_every_place_starve_neither_probes_nor_the_gate(
        tmp_path, sidecar, app, reader):
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"))],
                  more={"admin": {"max_connections": 4}}).start()
    one.wait_active()
    watchers = [reader(one) for _ in range(32)]
    assert [w.status for w in watchers] == [200] * 32
    refused = one.admin("/v1/events")
    assert refused.status == 503 and refused.json()["type"] == "urn:leasehold:problem:limit"
    assert refused.headers["Retry-After"]
    for _ in range(20):
        assert one.admin("/livez").status == one.admin("/readyz").status == 200
    assert get(one.gate(), "/").status == 200
    assert one.step_down().status == 200
    for watcher in watchers:
        watcher.wait("lease.draining", 5)


def test_filters_and_methods_over_the_wire(tmp_path, sidecar, app, reader):
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"))]).start()
    one.wait_active()
    only = reader(one, "?since=start&follow=false&event=gate.")
    only.wait_over()
    assert only.ended and set(only.names()) == {"gate.opened"}
    assert reader(one, "?lease=nope").status == 404
    assert reader(one, "?event=lease").status == 400
    head = one.admin("/v1/events", "HEAD")
    assert head.status == 200 and head.headers["Content-Type"] == "text/event-stream"
    for method in ("POST", "DELETE"):
        refused = one.admin("/v1/events", method)
        assert refused.status == 405 and refused.headers["Allow"] == "GET, HEAD"
    with Raw(one.admin_address) as raw:
        raw.send("GET /v1/events HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert raw.response().status == 421


def test_the_command_ends_in_order_however_it_is_ended(tmp_path, sidecar, app, command):
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"))]).start()
    one.wait_active()
    kept = command(one, "--no-follow")
    assert kept.finish() == 0
    assert "lease.acquired" in kept.names() and without_gaps([e["event_id"] for e in kept.events])
    since = command(one, "--no-follow", "--since", kept.events[0]["event_id"])
    assert since.finish() == 0
    assert since.events == kept.events[1:]
    follows = command(one)
    follows.wait("hello")
    assert follows.end(signal.SIGTERM) == 0
    # A reader that has seen enough; the pipe's end is noticed without another event.
    pipe = subprocess.run(f"{binary()} events --admin {one.admin_url} | head -1", shell=True,
                          executable="/bin/bash", capture_output=True, text=True, timeout=10,
                          check=False)
    assert "hello" in pipe.stdout and "app" in pipe.stdout
    begin = time.monotonic()
    status = subprocess.run(["/bin/bash", "-c", f"set -o pipefail; {binary()} events --admin "
                             f"{one.admin_url} | head -1"], capture_output=True, timeout=10,
                            check=False)
    assert status.returncode == 0 and time.monotonic() - begin < 5
    nobody = one.admin_url
    assert one.stop() == 0
    gone = subprocess.run([binary(), "events", "--admin", nobody], capture_output=True, text=True,
                          timeout=10, check=False)
    assert gone.returncode == 4 and nobody.removeprefix("http://") in gone.stderr
