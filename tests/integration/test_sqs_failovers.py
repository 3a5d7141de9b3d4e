"""1000 messages, five forced and five planned failovers, an unmodified sqs-consumer behind each of two
sidecars: each message is processed, none by a consumer whose sidecar stood by, and every one that was
processed twice was in flight in a forced failover."""

import collections
import time

from harness.measured import measured
from harness.process import free_port
from harness.sqs_clients import Consumer
from harness.sqs_scene import queue_url, sqs_gate
from harness.wait import wait_for

MESSAGES = 1000
FAILOVERS = 10
HANDLE_MS = 20
LEFT_AT_FAILOVER = 35   # with what waits out its visibility time-out after a kill
VISIBILITY = "5"   # s: what a killed holder's consumer had in flight comes back so much later
# From the gate's last byte to the consumer's first line about it, on a busy two-core machine.
READER_LAG = 0.25


class Failover:
    def __init__(self, kind, at, by):
        self.kind, self.at, self.by = kind, at, by

    def __repr__(self):
        return f"{self.kind} of {self.by}"


def terms_of(one, ends):
    """[(begin, end)] of a sidecar: from lease.acquired to its gate's closing, or to when it was killed."""
    terms = []
    for event in one.events(every_life=True):
        if event.name == "lease.acquired":
            terms.append([event.at, float("inf")])
        elif event.name == "gate.closed" and terms and terms[-1][1] == float("inf"):
            terms[-1][1] = event.at
    for term in terms:   # a killed process tells of no end
        term[1] = min([term[1], *(at for at in ends if at >= term[0])])
    return terms


def explained(message, failovers):
    """[(failover, how)]: for each receive after the first, why the one before it was not the last: it was
    in flight in that failover, or came to a poll which that failover had left open at the service. None
    if there is a receive without a failover."""
    found = []
    for (asked, first), (_, second) in zip(message.receives, message.receives[1:]):
        in_flight = [f for f in failovers if first - READER_LAG <= f.at <= second]
        swallowed = [f for f in failovers if asked <= f.at <= first]
        if not in_flight and not swallowed:
            return None
        found.append((in_flight[0], "in flight") if in_flight else (swallowed[-1], "swallowed"))
    return found


def test_1000_messages_and_ten_failovers_lose_none_and_explain_each_duplicate(
        dynalite, strict_sqs, sidecar, things, tmp_path):
    store = dynalite()
    service = strict_sqs(queues=())
    service.create_queue("orders", {"VisibilityTimeout": VISIBILITY})
    sidecars, consumers = [], {}
    for i in (1, 2):
        one = sidecar(f"s{i}", store, env=service.environment,
                      gates=[sqs_gate(service, listen=f"127.0.0.1:{free_port()}")],
                      lease={"ttl": "1s", "step_down_grace": "2s", "step_down_hold_off": "2s"}).start()
        wait_for(lambda: any(s.holding() for s in [*sidecars, one]), 5, "a holder")
        sidecars.append(one)
        consumers[one.node] = Consumer(tmp_path, one.node, queue_url(one, service), handle_ms=HANDLE_MS,
                                       batchSize=10, waitTimeSeconds=20)
        things.callback(consumers[one.node].close)
    began = time.time()
    failovers, kills = run(service, sidecars)
    wait_for(lambda: not service.queues["orders"].messages, 30,
             lambda: f"{len(service.queues['orders'].messages)} messages are left")
    judge(service, sidecars, consumers, failovers, kills)
    measured(f"sqs failovers took {time.time() - began:.0f} s")


def run(service, sidecars):
    """Sends while it moves the lease; (failovers, {node: [when it was killed]})."""
    failovers, kills = [], collections.defaultdict(list)
    numbers = iter(range(MESSAGES))

    def send(count):
        service.send(*(f"m{next(numbers)}" for _ in range(count)))

    for turn in range(FAILOVERS):
        holder = wait_for(lambda: next((s for s in sidecars if s.running() and s.holding()), None), 10, "a holder")
        other = next(s for s in sidecars if s is not holder)
        process = holder.admin("/v1/status").json()["node"]["process_id"]
        wait_for(lambda: (other.status()["record"] or {}).get("process_id") == process, 5, "a warm standby")
        send(MESSAGES // FAILOVERS // 2)
        # So many are left that the failover meets a consumer at work, and so few that most turns count.
        wait_for(lambda: len(service.queues["orders"].messages) <= LEFT_AT_FAILOVER, 15, "most are processed")
        if turn % 2 == 0:
            at = holder.kill9()
            kills[holder.node].append(at)
            failovers.append(Failover("kill -9", at, holder.node))
        else:
            failovers.append(Failover("step-down", time.time(), holder.node))
            answer = holder.step_down().json()
            assert answer["outcome"] == "taken_over_by_another_process", answer
        send(MESSAGES // FAILOVERS // 2)
        wait_for(other.holding, 5, lambda: f"{other.node} takes over: {other.tail()}")
        if turn % 2 == 0:
            holder.start()
    return failovers, kills


def judge(service, sidecars, consumers, failovers, kills):
    processed = collections.Counter()
    for one in sidecars:
        terms = terms_of(one, kills[one.node])
        assert terms, f"{one.node} never held"
        for event in consumers[one.node].events("began"):
            assert any(begin - 0.001 <= event["at"] <= end + READER_LAG for begin, end in terms), \
                f"{one.node} stood by when its consumer got {event}; its terms: {terms}"
        processed.update(e["body"] for e in consumers[one.node].events("done"))
    assert sorted(processed) == sorted(f"m{i}" for i in range(MESSAGES)), "lost"
    twice = {body for body, count in processed.items() if count > 1}
    causes, once = collections.Counter(), collections.Counter()
    for message in service.queues["orders"].deleted.values():
        found = explained(message, failovers)
        assert found is not None, f"{message.body} was received again without a failover: {message.receives}"
        how = [f"{word} in a {failover.kind}" for failover, word in found]
        (causes if message.body in twice else once).update(how)
        assert message.body not in twice or "in flight in a kill -9" in how, \
            f"{message.body} was processed twice: {found}, {message.receives}"
    forced = sum(1 for f in failovers if f.kind == "kill -9")
    assert forced == FAILOVERS // 2 == len(failovers) - forced
    held = {one.node: len(consumers[one.node].events("done")) for one in sidecars}
    measured(f"sqs failovers: {MESSAGES} messages, {forced} kill -9, {len(failovers) - forced} step-downs: "
             f"{len(processed)} distinct processed ({held}), {len(twice)} of them twice ({dict(causes)}), "
             f"{sum(once.values())} more received again but processed once ({dict(once)}), 0 by a standby")
