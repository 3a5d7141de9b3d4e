"""A log that nobody reads costs lines, never the lease."""

import fcntl
import json
import os
import subprocess

import pytest

from harness.client import get
from harness.process import free_port
from harness.sidecar import binary
from harness.wait import watch_for

F_SETPIPE_SZ = 1031  # linux/fcntl.h; not in Python 3.9's fcntl
# Two pages; Linux calls a pipe full as soon as its last page is begun: about 25 lines.
PIPE_BYTES, FULL_FROM = 8192, 4096


@pytest.mark.parametrize("reader", ["stopped_reading", "is_gone"])
def test_a_stuck_log_reader_stalls_nothing(sidecar, app, tmp_path, things, reader):
    backend = app("a")
    ports = free_port(), free_port()
    # Not started: it is its configuration that is wanted.
    one = sidecar("s1", tmp_path / "store",
                  gates=[{"name": "web", "type": "http", "upstream": backend.address,
                          "listen": f"127.0.0.1:{ports[0]}"}],
                  lease={"step_down_grace": "100ms"},
                  more={"admin": {"listen": f"127.0.0.1:{ports[1]}"}})
    readable, writable = os.pipe()
    things.callback(os.close, readable) if reader == "stopped_reading" else os.close(readable)
    fcntl.fcntl(writable, F_SETPIPE_SZ, PIPE_BYTES)
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", binary(), "run", "-c",
                                one.config_path], stdin=subprocess.DEVNULL, stderr=writable)
    os.close(writable)
    things.callback(process.wait)
    things.callback(process.kill)
    api = ("--admin", f"http://127.0.0.1:{ports[1]}")

    def cli(*arguments):
        return subprocess.run([binary(), *arguments, *api], capture_output=True, text=True,
                              timeout=20, check=False)
    assert cli("wait", "--for", "active", "--timeout", "10s").returncode == 0
    for _ in range(60):  # each is refused, and a line in the log
        refused = get(("127.0.0.1", ports[1]), "/v1/leases/app/step-down", method="POST",
                      body=json.dumps({"expected_node_id": "s9", "expected_token": "9"}))
        assert refused.status == 412
    # Longer than the ttl: it renews.
    watch_for(lambda: process.poll() is None and
              get(("127.0.0.1", ports[0])).status == 200, 2.5, "it serves on")
    if reader == "stopped_reading":
        os.set_blocking(readable, False)
        first = os.read(readable, 65536)
        assert len(first) >= FULL_FROM - 512, "the pipe was not full: this proves nothing"
        assert cli("step-down", "--yes").returncode == 0
        assert b"event=log.dropped" in os.read(readable, 65536), "what was lost is told"
    process.terminate()
    assert process.wait(10) == 0


def test_at_level_debug_each_step_of_a_lease_is_a_line(sidecar, app, tmp_path):
    backend = app("a")

    def steps(name, level):
        gate = {"name": "web", "type": "http", "upstream": backend.address}
        one = sidecar(name, tmp_path / name, gates=[gate],
                      more={"log": {"level": level}})
        one.start()
        one.wait_active()
        one.stop()
        return [(step["told"], step["msg"]) for step in one.events("lease.step")]

    told = steps("s1", "debug")
    assert told, "no lease.step at level debug"
    assert any(heard.startswith("write #") and "applied" in heard and "tell lease.acquired token=1" in answered
               for heard, answered in told), told
    assert any("release #" in answered for _, answered in told), told
    assert not steps("s2", "info")
