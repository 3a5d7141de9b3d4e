"""The SQS part: wrk calls SQS directly and through each proxy, in rounds whose order alternates."""

import pathlib
import statistics
import time
from dataclasses import dataclass, field

import http_bench
from http_bench import Round
from processes import Failure, cpu_seconds, resident_bytes
from sqs_proxies import SIGNING, names

WARM_UP_SECONDS = 1
STEADY_CALLS = 100_000  # the growth of memory is measured over at least so many
SCRIPT = ("-s", pathlib.Path(__file__).resolve().parent / "sqs_load.lua")
WORK = ("send", "consume")
IN_ROUND_MAX = 64 + 1  # calls of a round before that may be counted in one: connections, the probe


@dataclass
class SqsResult:
    rounds: dict = field(default_factory=lambda: {work: [] for work in WORK})
    single: list = field(default_factory=list)  # rounds of one connection, for latency
    rss_idle: int = 0
    rss_warm: int = 0  # after the warm-up: all connections were there once
    rss_end: int = 0   # after all rounds, at least STEADY_CALLS later
    calls: int = 0     # in all, since rss_warm
    signatures: int = 0  # of those, recomputed and found right

    def cpu_per_100k(self, work):
        rounds = self.rounds[work]
        return sum(r.cpu for r in rounds) / sum(r.requests for r in rounds) * 100_000

    def cpu_spread(self, work):
        each = [r.cpu / r.requests * 100_000 for r in self.rounds[work]]
        return min(each), max(each)

    def rate(self, work):
        return statistics.median(r.requests / r.seconds for r in self.rounds[work])

    def p50(self):
        return statistics.median(r.p50 for r in self.single)

    def p99(self):
        return statistics.median(r.p99 for r in self.single)


class Lane:
    """The way from wrk to SQS: through a proxy, or directly (None)."""

    def __init__(self, name, proxy, upstream, load_cpus):
        self.name, self.proxy, self.upstream, self.load_cpus = name, proxy, upstream, load_cpus
        self.port = proxy.port if proxy else upstream.open
        self.result = SqsResult()

    def cpu(self):
        return cpu_seconds(self.proxy.pid) if self.proxy else 0.0

    def resident(self):
        return resident_bytes(self.proxy.pid) if self.proxy else 0

    def measure(self, work, seconds, connections=http_bench.CONNECTIONS):
        counts, cpu = self.upstream.counts(), self.cpu()
        calls, took, p50, p99 = http_bench.load(self.port, seconds, self.load_cpus, connections,
                                                SCRIPT, ("--", work))
        cpu = self.cpu() - cpu
        self.check(work, calls, counts, self.upstream.counts())
        self.result.calls += calls
        return Round(calls, took, cpu, p50, p99)

    def check(self, work, calls, before, after):
        """Every call that wrk saw answered was answered by SQS, and by nobody before it."""
        done = {key: after[key] - before[key] for key in after}
        self.result.signatures += done.pop("SignaturesChecked")
        if not calls <= sum(done.values()) <= calls + 2 * IN_ROUND_MAX:
            raise Failure(f"{self.name}: wrk counted {calls} answers, SQS gave {done}: not every "
                          "call was passed on once")
        if work == "consume" and abs(done["ReceiveMessage"] - done["DeleteMessage"]) > IN_ROUND_MAX:
            raise Failure(f"{self.name}: what was received was not deleted: {done}")


def _warm_up(lanes):
    time.sleep(1)
    for lane in lanes:
        lane.result.rss_idle = lane.resident()
    for lane in lanes:
        for work in WORK:
            lane.measure(work, WARM_UP_SECONDS)
        lane.result.rss_warm, lane.result.calls = lane.resident(), 0


def _round(lane, seconds, say, title):
    result = lane.result
    for work in WORK:
        result.rounds[work].append(lane.measure(work, seconds))
    result.single.append(lane.measure("consume", seconds, connections=1))
    last = [result.rounds[work][-1] for work in WORK]
    say(f"  {title}  {lane.name:<16}" + "  ".join(
        f"{work} {r.requests / r.seconds:>7.0f}/s {r.cpu / r.requests * 1e5:>6.2f} CPU s per 100k"
        for work, r in zip(WORK, last)) + f"  alone {result.single[-1].p50 * 1e6:.0f} µs")


def run(make_proxy, upstream, rounds, seconds, load_cpus, say):
    """{name: SqsResult}; "direct" first. make_proxy(name, port of SQS)."""
    lanes = [Lane("direct", None, upstream, load_cpus)]
    try:
        for name in names():
            port = upstream.signed if name in SIGNING else upstream.open
            lanes.append(Lane(name, make_proxy(name, port), upstream, load_cpus))
        _warm_up(lanes)
        for number in range(rounds):
            for lane in lanes[::-1] if number % 2 else lanes:
                _round(lane, seconds, say, f"round {number + 1}/{rounds}")
        for lane in lanes:
            # Ours alone is promised not to grow.
            while lane.name == "leasehold" and lane.result.calls < STEADY_CALLS:
                lane.measure("consume", seconds)
            lane.result.rss_end = lane.resident()
            if lane.name in SIGNING and lane.result.signatures == 0:
                raise Failure(f"{lane.name} signed nothing that SQS checked")
    finally:
        for lane in lanes:
            if lane.proxy:
                lane.proxy.end()
    return {lane.name: lane.result for lane in lanes}
