"""What a lease in DynamoDB costs: the README's numbers, and whether the program keeps to them."""

import json
import pathlib
import re
import subprocess
import time

from harness.measured import measured
from harness.pair import Pair, http_gate
from harness.sidecar import binary
from harness.wait import wait_for

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
HOUR = 3600.0
CHANCE = 17 / 16      # each wait is longer by 0 to 1/8
PROBE_SECONDS = 30    # app/lease_driver.cc
WATCHED_SECONDS = 10.0


def seconds(text):
    """"1.481s", "250ms" """
    number, unit = re.fullmatch(r"([0-9.]+)(ms|s|m)", text).groups()
    return float(number) * {"ms": 0.001, "s": 1, "m": 60}[unit]


def derived(tmp_path, ttl):
    """What `leasehold check` prints for this TTL."""
    config = tmp_path / "check.conf"
    config.write_text(f"""
[store]
type = "dynamodb"
dynamodb.region = "eu-central-1"
[[lease]]
name = "orders"
ttl = "{ttl}"
[[gate]]
name = "web"
type = "http"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:1"
""")
    done = subprocess.run([binary(), "check", "-c", config, "--json"], capture_output=True, text=True,
                          timeout=20, check=True)
    return json.loads(done.stdout)["config"]["lease"][0]["derived"]


def row(text, *first):
    """The cells of the README's table row that begins with this one, as numbers."""
    cells = next(line for line in text.splitlines() if line.startswith(f"| {first[0]} |"))
    return [float(cell.split()[0]) for cell in cells.strip("| ").split("|")[1:]]


def test_the_readme_states_what_follows_from_leasehold_check(tmp_path):
    text = README.read_text().partition("### DynamoDB: what it costs")[2].partition("\n## ")[0]
    for ttl in ("10s", "30s", "1m"):
        timing = derived(tmp_path, ttl)
        writes = HOUR / (seconds(timing["renew_interval"]) * CHANCE)
        reads = HOUR / (seconds(timing["poll_interval"]) * CHANCE)
        stated = row(text, f'`"{ttl}"`')
        assert abs(stated[0] - writes) <= 1, (ttl, stated, writes)
        assert abs(stated[1] - reads) <= 1, (ttl, stated, reads)
        # The window, after the last renewal was seen: within one poll.
        assert abs(stated[2] - seconds(timing["observation_window"])
                   - seconds(timing["poll_interval"])) < 1, (ttl, stated)
        if ttl != "10s":
            continue
        assert row(text, "holder") == [stated[0], stated[0], 0]
        probes = HOUR / PROBE_SECONDS
        assert row(text, "each standby") == [stated[1] + probes, probes, stated[1]]


def test_holder_and_standby_ask_as_often_as_stated_and_nothing_else(dynalite, fault_proxy, sidecar, app):
    store = dynalite()
    proxies = [fault_proxy(store) for _ in range(2)]  # tell the two apart
    apps = (app("a"), app("b"))
    both = Pair(*(sidecar(f"s{i + 1}", proxies[i], gates=[http_gate(apps[i])], lease={"ttl": "4s"})
                  for i in range(2)), apps).start()
    timing = both.second.status()["timing"]
    begin = time.time()
    writes = lambda: proxies[0].writes(begin)
    reads = lambda: proxies[1].reads(begin)
    span = lambda calls: calls[-1].at - calls[0].at if len(calls) > 1 else 0
    wait_for(lambda: min(span(writes()), span(reads())) >= WATCHED_SECONDS, 3 * WATCHED_SECONDS,
             "enough renewals and polls")
    kept = writes(), reads()
    others = [[l.command.name for l in list(proxy.log) if l.at >= begin and l not in calls]
              for proxy, calls in zip(proxies, kept)]
    assert others[0] == [], "a holder only renews"
    assert set(others[1]) <= {"UpdateItem"} and len(others[1]) <= 1, "a standby's proof that it could write"
    for calls, interval, who in ((kept[0], "renew_interval_ms", "holder, writes"),
                                 (kept[1], "poll_interval_ms", "standby, reads")):
        rate = HOUR * (len(calls) - 1) / span(calls)
        stated = HOUR / (timing[interval] / 1000 * CHANCE)
        measured(f"DynamoDB at ttl 4 s, {who}: {rate:.0f} an hour, stated {stated:.0f}")
        # The chance of 15 waits is off by 1 % or 2; a busy machine asks later, never sooner.
        assert 0.8 * stated <= rate <= 1.06 * stated, (who, rate, stated)
