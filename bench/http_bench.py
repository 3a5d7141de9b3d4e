"""The HTTP part: wrk over each proxy, in rounds whose order alternates."""

import re
import statistics
import subprocess
import time
from dataclasses import dataclass, field

from processes import Failure, cpu_seconds, in_child, resident_bytes
from proxies import HTTP, find

NAMES = tuple(HTTP)  # leasehold first

CONNECTIONS = 64
WARM_UP_SECONDS = 1
STEADY_REQUESTS = 200_000  # the growth of memory is measured over at least so many
STARTS = 5                 # start-up is the median of so many
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


@dataclass
class Round:
    requests: int
    seconds: float
    cpu: float
    p50: float
    p99: float


@dataclass
class Result:
    startup: float = 0.0
    rss_idle: int = 0
    rss_warm: int = 0        # after the warm-up: all connections were there once
    rss_end: int = 0         # after all rounds, at least STEADY_REQUESTS later
    requests: int = 0        # in all, since rss_warm
    rounds: list = field(default_factory=list)

    def cpu_per_100k(self):
        """Over all rounds: /proc counts in ticks of 10 ms, too coarse for the mean of ratios."""
        return sum(r.cpu for r in self.rounds) / sum(r.requests for r in self.rounds) * 100_000

    def cpu_spread(self):
        each = [r.cpu / r.requests * 100_000 for r in self.rounds]
        return min(each), max(each)

    def rate(self):
        return statistics.median(r.requests / r.seconds for r in self.rounds)

    def p50(self):
        return statistics.median(r.p50 for r in self.rounds)

    def p99(self):
        return statistics.median(r.p99 for r in self.rounds)


def _time(text):
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", text).groups()
    return float(number) * _UNITS[unit]


def load(port, seconds, cpus, connections=CONNECTIONS, script=(), words=()):
    """wrk, one thread. `script`: wrk's options for one, `words`: what it is told.
    (requests, seconds, p50, p99)."""
    command = [find("wrk"), "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *script,
               f"http://127.0.0.1:{port}/", *words]
    out = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, check=False,
                         preexec_fn=in_child(cpus))
    total = re.search(r"(\d+) requests in ([\d.]+[a-z]+)", out.stdout)
    if total is None:
        raise Failure(f"wrk said nothing usable:\n{out.stdout}{out.stderr}")
    if wrong := re.search(r"Non-2xx.*|Socket errors.*", out.stdout):
        raise Failure(f"wrk saw errors, so nothing was measured: {wrong.group(0)}")
    p50, p99 = (re.search(rf"{p}%\s+([\d.]+[a-z]+)", out.stdout).group(1) for p in (50, 99))
    return int(total.group(1)), _time(total.group(2)), _time(p50), _time(p99)


def measure_round(proxy, seconds, cpus):
    before = cpu_seconds(proxy.pid)
    requests, took, p50, p99 = load(proxy.port, seconds, cpus)
    return Round(requests, took, cpu_seconds(proxy.pid) - before, p50, p99)


def start_all(make_proxy, results):
    """Start-up times in turns, then one of each to stay; its memory after a second of idleness."""
    startups = {name: [] for name in NAMES}
    for _ in range(STARTS - 1):
        for name in NAMES:
            proxy = make_proxy(name)
            startups[name].append(proxy.startup)
            proxy.end()
    proxies = {name: make_proxy(name) for name in NAMES}
    time.sleep(1)
    for name, proxy in proxies.items():
        results[name].startup = statistics.median(startups[name] + [proxy.startup])
        results[name].rss_idle = resident_bytes(proxy.pid)
    return proxies


def run(make_proxy, rounds, seconds, load_cpus, say):
    """{name: Result}."""
    results = {name: Result() for name in NAMES}
    proxies = start_all(make_proxy, results)
    try:
        for name, proxy in proxies.items():
            load(proxy.port, WARM_UP_SECONDS, load_cpus)
            results[name].rss_warm = resident_bytes(proxy.pid)
        for number in range(rounds):
            # Forwards, then backwards: what changes slowly on this machine hits all alike.
            for name in NAMES[::-1] if number % 2 else NAMES:
                one = measure_round(proxies[name], seconds, load_cpus)
                results[name].rounds.append(one)
                results[name].requests += one.requests
                say(f"  round {number + 1}/{rounds}  {name:<10} {one.requests / one.seconds:>8.0f} "
                    f"requests/s  {one.cpu / one.requests * 1e5:>6.3f} CPU s per 100k")
        for name, proxy in proxies.items():
            # Ours alone is promised not to grow; the others would only cost time here.
            while name == "leasehold" and results[name].requests < STEADY_REQUESTS:
                results[name].requests += load(proxy.port, seconds, load_cpus)[0]
            results[name].rss_end = resident_bytes(proxy.pid)
    finally:
        for proxy in proxies.values():
            proxy.end()
    return results
