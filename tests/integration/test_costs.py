"""What it costs: store commands, memory, time to start."""

import re
import statistics
import subprocess
import time

import pytest

from harness.client import get
from harness.fast_app import FastApp
from harness.measured import measured
from harness.pair import Pair, http_gate
from harness.sanitizer import has_sanitizers
from harness.sidecar import binary
from harness.wait import wait_for

MIB = 1024 * 1024


def build_kind():
    """"release", "debug" or "sanitized": the limits hold for the program that is shipped."""
    if has_sanitizers(binary()):
        return "sanitized"
    with open(binary(), "rb") as f:
        return "debug" if b".debug_info" in f.read() else "release"


def limit_for(release, debug, sanitized, what):
    """The limit for this build; other ones for builds that are not shipped, with a printed reason."""
    kind = build_kind()
    limit = {"release": release, "debug": debug, "sanitized": sanitized}[kind]
    if kind != "release":
        measured(f"{what}: a {kind} build is not what is shipped, so the limit is {limit:g} instead "
                 f"of {release:g}")
    return limit


def test_a_steady_holder_costs_one_write_a_renewal_and_a_standby_reads_no_faster_than_its_fallback(
        redis_server, fault_proxy, sidecar, app):
    store = redis_server()
    proxies = [fault_proxy(store) for _ in range(2)]  # tell the two apart
    apps = (app("a"), app("b"))
    both = Pair(*(sidecar(f"s{i + 1}", proxies[i], gates=[http_gate(apps[i])], lease={"ttl": "4s"})
                  for i in range(2)), apps).start()
    timing = both.second.status()["timing"]
    assert both.second.metric("leasehold_store_connected") == 1
    before = store.command_calls()
    begin = time.time()
    wait_for(lambda: len(proxies[0].writes(begin)) >= 8, 12, "eight renewals")
    end = time.time()
    after = store.command_calls()
    renewals = len(proxies[0].writes(begin))
    assert proxies[0].reads(begin) == []
    assert proxies[1].writes(begin) == []
    reads = len(proxies[1].reads(begin))
    seconds = end - begin
    assert renewals <= seconds / (timing["renew_interval_ms"] / 1000) + 1
    assert reads <= seconds / (timing["poll_interval_ms"] / 1000) + 1
    # Nothing else goes over any connection: scripts are all that is called, by digest.
    scripts = after.get("evalsha", 0) - before.get("evalsha", 0)
    assert after.get("eval", 0) == before.get("eval", 0)
    assert abs(scripts - renewals - reads) <= 1
    assert after.get("publish", 0) - before.get("publish", 0) <= renewals + 1
    others = {n: after[n] - before.get(n, 0) for n in after if after[n] != before.get(n, 0)}
    # What the scripts run inside is counted too: one read and one write each.
    assert set(others) <= {"evalsha", "hgetall", "persist", "hset", "publish", "time", "info", "ping"}, others
    measured(f"store cost in {seconds:.1f} s at ttl 4 s: holder {renewals} writes and no reads, "
             f"standby {reads} reads (poll_interval {timing['poll_interval_ms']} ms)")


@pytest.fixture(params=["file", "redis", "dynamodb"])
def kind(request):
    return request.param


@pytest.fixture
def store(request, kind, tmp_path):
    if kind == "file":
        return tmp_path / "store"
    return request.getfixturevalue({"redis": "redis_server", "dynamodb": "dynalite"}[kind])()


def test_it_is_ready_within_100_ms_of_its_start(store, sidecar, app, kind):
    backend = app("a")
    one = sidecar("s1", store, gates=[http_gate(backend)])
    listening, held = [], []
    for _ in range(5):
        one.start(ready=False)
        acquired = one.wait_event("lease.acquired", 5)
        listening.append(one.last("sidecar.started").at - one.started_at)
        held.append(acquired.at - one.started_at)
        assert one.admin("/readyz").status == 200
        assert get(one.gate()).status == 200
        assert one.stop() == 0
    limit = limit_for(0.1, 0.3, 3, f"start on {kind}")
    measured(f"start on {kind}: everything listens after "
             + ", ".join(f"{t * 1000:.0f}" for t in listening) + " ms, a free lease is held after "
             + ", ".join(f"{t * 1000:.0f}" for t in held) + f" ms (limit {limit * 1000:.0f} ms)")
    assert statistics.median(listening) < limit


def test_idle_it_takes_at_most_10_mib(store, sidecar, app, kind):
    one = sidecar("s1", store, gates=[http_gate(app("a"))]).start()
    one.wait_active()
    # Renewals, a scrape and a request have happened: that is what idle looks like in production.
    wait_for(lambda: (one.metric("leasehold_lease_renewals_total", result="ok") or 0) >= 3, 5,
             "three renewals")
    assert get(one.gate()).status == 200
    rss = one.process.rss_bytes()
    limit = limit_for(10 * MIB, 30 * MIB, 300 * MIB, f"idle memory on {kind}")
    measured(f"idle memory on {kind}: {rss / MIB:.1f} MiB (limit {limit / MIB:.0f} MiB)")
    assert rss <= limit


def wrk(address, connections, seconds):
    """Requests answered, by wrk's own count; no error may have happened."""
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
                           "http://%s:%d/" % address],
                          capture_output=True, text=True, timeout=seconds + 30, check=True)
    assert "Socket errors" not in done.stdout and "Non-2xx" not in done.stdout, done.stdout
    return int(re.search(r"(\d+) requests in", done.stdout).group(1))


def test_200_000_requests_leave_no_growth(sidecar, things, tmp_path):
    fast = FastApp(tmp_path / "fast.log")
    things.callback(fast.close)
    one = sidecar("s1", tmp_path / "store", lease={"ttl": "10s"}, gates=[http_gate(fast)]).start()
    one.wait_active()
    connections = 32
    warm = 0
    while warm < 20000:
        warm += wrk(one.gate(), connections, 2)
    before = one.process.rss_bytes()
    done, begin = 0, time.monotonic()
    while done < 200000:
        done += wrk(one.gate(), connections, 3)
        assert time.monotonic() - begin < 120, f"only {done} requests in two minutes"
    growth = one.process.rss_bytes() - before
    # Half a KiB a connection and the allocator's rounding; a leak of 4 bytes a request is beyond it.
    # AddressSanitizer keeps 256 MiB of what was freed.
    limit = limit_for(MIB // 2, MIB, 300 * MIB, "growth over 200 000 requests")
    measured(f"memory after {warm} requests {before / MIB:.2f} MiB, after {done} more "
             f"{growth / 1024:+.0f} KiB (limit {limit / 1024:.0f} KiB)")
    assert growth <= limit
    assert one.token() == 1 and not one.events("lease.at_risk")
