"""All records of one run, read from its directory and put into order for the rules (checker.py).
Nothing here was told by whoever ran it but the journal of what was done to the processes."""

import collections
import dataclasses
import re

from moves.judge import read_record
from moves.scene import SLOW_IDS

from .clients import HOLD_IDS, LINE_IDS, SLOW_CLIENT_IDS
from .records import SECOND, Clock, read_executed, read_journal, read_log, terms_of

# The kernel's tick, in which an arrival is told (CONFIG_HZ, 100 at the least), and the logs' grain.
GRAIN = 12_000_000
# What a processor that is shared makes of "at once", for a process that was just sent SIGCONT.
AT_ONCE = SECOND // 10


@dataclasses.dataclass
class Asked:
    """A request as its client saw it. sent 0: it never left."""
    id: int
    post: bool
    plain: bool      # its body is in one piece with its head
    scheduled: int
    sent: int
    done: int
    result: str
    app: str

    @property
    def ok(self):
        return self.result == "ok"

    @property
    def kind(self):
        if self.id < HOLD_IDS:
            return "web"
        return "hold" if self.id < SLOW_CLIENT_IDS else "slow" if self.id < LINE_IDS else "raw"

    def __str__(self):
        return (f"{self.kind} {'POST' if self.post else 'GET'} {self.id} sent {self.sent}, "
                f"{self.result} by {self.app or 'nobody'} after "
                f"{(self.done - self.scheduled) / 1e6:.0f} ms")


class Spans:
    """Sorted, disjoint spans of time."""

    def __init__(self, spans):
        self.spans = sorted(spans)

    def touch(self, begin, end):
        return any(b <= end and begin <= e for b, e in self.spans)


class Evidence:
    def __init__(self, directory):
        self.directory = directory
        self.journal = read_journal(directory / "journal.jsonl")
        self.scene = next(line for line in self.journal if line["what"] == "scene")
        self.nodes = self.scene["nodes"]
        self.node_of = {node["app"]: name for name, node in self.nodes.items()}
        self.requests = self._requests()
        self.executed = read_executed(directory / "executed.log")
        self.logs = {name: read_log(directory / name / "sidecar.log",
                                    Clock(self.journal, name, self.scene["wall_to_boot"]))
                     for name in self.nodes}
        self.deaths = {name: self._deaths(name) for name in self.nodes}
        self.began = self.journal[0]["at"]
        self.ended = self.journal[-1]["at"]
        self.stopped = {name: self._stopped(name) for name in self.nodes}
        # Afterwards the scene is taken down, one after the other.
        self.terms = sorted((self._begun_when_stopped(term) for name in self.nodes
                             for term in terms_of(name, self.logs[name], self.deaths[name])
                             if term.begin < self.ended), key=lambda term: term.begin)
        self.lost_writes = self._lost_writes()
        self.grants, self.deaf = self._grants(read_journal(directory / "store.jsonl"))
        self.storms = self._storms()

    def _lost_writes(self):
        """[(at, until, how)]: between which the store lost writes. It is told before, and after where a
        command does it, which the store may carry out later (it may be paused)."""
        losses = []
        for line in self.journal:
            if line["what"] == "store.lost":
                losses.append((line["at"], line["at"], line["how"]))
            elif line["what"] == "store.loss_over" and losses:
                losses[-1] = (losses[-1][0], line["at"], losses[-1][2])
        return losses

    def _requests(self):
        asked = []
        for first in (SLOW_IDS, HOLD_IDS):
            path = self.directory / f"load-{first}.txt"
            for r in read_record(path) if path.exists() else []:
                body = r.kind.partition("/")[2]
                asked.append(Asked(r.id, r.kind.startswith("POST"), body in ("", "0", "100"),
                                   r.scheduled, r.sent, r.done, r.result, r.app))
        for line in read_journal(self.directory / "clients.jsonl"):
            asked.append(Asked(line["id"], True, True, line["sent"] or line["done"], line["sent"],
                               line["done"], line["result"], line["app"]))
        return asked

    def lines(self, what, node=None):
        return [line for line in self.journal
                if line["what"] == what and node in (None, line.get("node"))]

    def _deaths(self, node):
        """[(from, until)] between which a process of it ended. kill -9: from the signal until it was
        gone. Other ends: when they were seen."""
        return [(line.get("since", line["at"]), line["at"]) for line in self.journal
                if line.get("node") == node and
                line["what"] in ("sidecar.killed", "sidecar.ended")]

    def _stopped(self, node):
        """From before SIGSTOP to before SIGCONT."""
        spans, begin = [], None
        for line in self.journal:
            if line.get("node") != node:
                continue
            if line["what"] == "sidecar.stopping" and begin is None:
                begin = line["at"]
            elif line["what"] in ("sidecar.going_on", "sidecar.killed") and begin is not None:
                spans.append((begin, line["at"]))
                begin = None
        return Spans(spans)

    def _begun_when_stopped(self, term):
        """A term that was over at the thaw began before the stop: the process was stopped between the
        beginning and the line that tells of it."""
        if term.reason == "lease.lost host_frozen" and term.end - term.begin < AT_ONCE:
            span = self.thawed(term.node, term.begin)
            if span is not None:
                term.begin = span[0]
        return term

    def _grants(self, lines):
        """{(token, process): [(at, state, ttl)] in order}, and when nobody listened."""
        grants, deaf, since = collections.defaultdict(list), [], 0
        for line in lines:
            if line["what"] == "granted":
                grants[line["token"], line["process"]].append(
                    (line["at"], line["state"], line["ttl"]))
            elif line["what"] == "deaf":
                since = since or line["at"]
            elif line["what"] == "listening":
                deaf.append((since, line["at"]))
                since = 0
        for each in grants.values():
            each.sort()
        return grants, Spans(deaf)

    def _storms(self):
        """[(begin, end of all faults, end of the calm)]"""
        storms, begin, end = [], 0, 0
        for line in self.journal:
            if line["what"] == "storm.begin":
                begin = line["at"]
            elif line["what"] == "storm.end":
                end = line["at"]
            elif line["what"] == "calm.end":
                storms.append((begin, end, line["at"]))
        return storms

    def events(self, *names):
        return sorted(((at, node, event) for node, log in self.logs.items() for at, event in log
                       if event.name in names), key=lambda each: each[0])

    def thawed(self, node, at):
        """The stop of this node that ended at once before `at`, or is just ending; or None."""
        return next((span for span in self.stopped[node].spans
                     if span[0] <= at <= span[1] + AT_ONCE), None)

    def stray_lines(self, name):
        """What a sidecar wrote that is no log line: a failed CHECK, a sanitizer's report."""
        text = (self.directory / name / "sidecar.log").read_text(errors="replace")
        return [line for line in text.splitlines()
                if re.search(r"CHECK|Sanitizer|runtime error|terminate called", line)]
