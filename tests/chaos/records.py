"""What a run leaves behind, written while it runs and read afterwards. Times are nanoseconds of the
boot clock, which all processes of a host share, and which no fault moves."""

import dataclasses
import json
import threading
import time

from harness import logfmt

SECOND = 1_000_000_000
# A sidecar's log has milliseconds of the wall clock.
LOG_GRAIN = 2_000_000
NEVER = 1 << 62


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def wall_to_boot():
    """What to add to wall-clock nanoseconds."""
    return boot_ns() - time.time_ns()


class Journal:
    """A file of JSON lines, each with when it was written. Any thread may write."""

    def __init__(self, path):
        self._file = open(path, "a", buffering=1, encoding="utf-8")
        self._lock = threading.Lock()

    def write(self, what, **fields):
        at = fields.pop("at", None) or boot_ns()
        with self._lock:
            self._file.write(json.dumps({"at": at, "what": what, **fields}) + "\n")
        return at

    def close(self):
        self._file.close()


def read_journal(path):
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return sorted(lines, key=lambda line: line["at"])


@dataclasses.dataclass
class Arrival:
    """A line of the applications' log."""
    what: str
    at: int
    app: str
    id: int
    token: int
    sequence: int
    process: str
    arrived: int


def read_executed(path):
    lines = []
    for line in path.read_text().splitlines():
        w = line.split(" ")
        lines.append(Arrival(w[0], int(w[1]), w[2], int(w[3]), int(w[4]), int(w[5]), w[6], int(w[7])))
    return lines


@dataclasses.dataclass
class Term:
    """One holder's time, as its sidecar's log has it. `shut`: its last gate was; `end`: it was over by
    any witness. The sidecar's own word may come late, if it was stopped."""
    node: str
    token: int
    process: str
    begin: int
    shut: int
    end: int
    reason: str = ""


class Clock:
    """A node's wall clock: which offset it had when (the journal's `clock` lines)."""

    def __init__(self, journal, node, base):
        self._base = base
        self._spans = [(0, 0)]  # since, seconds
        for line in journal:
            if line["what"] == "clock" and line["node"] == node:
                self._spans.append((line["at"], line["seconds"]))

    # A step is this long under way: the file is written, the sidecar reads the clock when it does.
    SLACK = SECOND

    def boot(self, wall):
        """Boot-clock time of one of its wall-clock times: steps are longer than a run, so that only
        one of the offsets fits."""
        for i, (since, seconds) in enumerate(self._spans):
            until = self._spans[i + 1][0] if i + 1 < len(self._spans) else NEVER
            at = wall - seconds * SECOND + self._base
            if since - self.SLACK <= at <= until + self.SLACK:
                return at
        return wall + self._base


def read_log(path, clock):
    """A sidecar's log as [(boot time, Event)]."""
    lines = []
    for line in path.read_text(errors="replace").splitlines():
        fields = logfmt.parse(line)
        if fields is not None:
            event = logfmt.Event(fields)
            lines.append((clock.boot(round(event.at * 1000) * 1_000_000), event))
    return lines


def told_of_a_loss(event):
    """Whether this line of a sidecar tells that its store lost writes."""
    return event.name == "lease.token_regression" or (
        event.name == "lease.lost" and
        event.reason in ("absent", "store_regressed", "token_regression"))


DIED = "the process ended"
ENDS = {"lease.lost", "lease.released"}


def terms_of(node, log, deaths):
    """[Term] of one sidecar; `deaths`: spans in which its processes ended, from the journal. A
    release may be confirmed long after it was sent; the gates were shut before it was sent."""
    terms = []
    for at, event in log:
        if event.name == "lease.acquired":
            terms.append(Term(node, event.token, event["process"], at, NEVER, NEVER))
        elif event.name == "sidecar.stopped" and terms and not terms[-1].reason:
            terms[-1].end, terms[-1].reason = at, DIED  # told twice, it left the lease behind
            terms[-1].shut = min(terms[-1].shut, at)
        elif not terms or event.token != terms[-1].token:
            continue
        elif event.name == "gate.closed":
            terms[-1].shut = at
        elif event.name in ENDS and not terms[-1].reason:
            terms[-1].end, terms[-1].reason = at, f"{event.name} {event.reason}"
            terms[-1].shut = min(terms[-1].shut, at)
    for term in terms:
        begin, end = next((d for d in sorted(deaths) if d[1] >= term.begin - LOG_GRAIN),
                          (NEVER, NEVER))
        if end < term.end:
            term.end, term.reason = end, DIED
            term.shut = min(term.shut, begin)
    return terms
