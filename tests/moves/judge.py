"""The verdict: what the client saw beside what the applications executed."""

import collections
import dataclasses
import statistics

MS = 1e6  # nanoseconds
EXAMPLES = 5
# What may become of a request when a process dies or stops under it: it is cut, its gate cannot say how
# it ended, or says that nothing was done. Nothing else may, and least of all may it be executed twice,
# save what is safe to repeat.
OF_A_CRASH = {"reset", "closed", "cut", "status_502/peer_failed", "status_504/peer_timeout",
              "status_503/peer_not_admitted"}
# A request belongs to a move when any of its time lies in the move, or so soon after that a queue
# which the move left may still have been there.
AFTERMATH_NS = 100 * 1_000_000


@dataclasses.dataclass
class Request:
    id: int
    kind: str
    gate: int
    scheduled: int
    sent: int
    done: int
    result: str
    app: str
    token: int
    refused: int

    @property
    def latency(self):
        """Milliseconds from the scheduled instant to the last byte."""
        return (self.done - self.scheduled) / MS

    @property
    def lateness(self):
        return (self.sent - self.scheduled) / MS


@dataclasses.dataclass
class Line:
    what: str
    at: int
    app: str
    id: int
    token: int
    sequence: int


@dataclasses.dataclass
class Move:
    asked: int     # boot clock, nanoseconds
    done: int      # the other one's gate is open, and the asker has been told
    took: float = 0.0  # milliseconds from the request to step down to the other's gate open


def read_record(path):
    requests = []
    for line in path.read_text().splitlines():
        w = line.split(" ")
        requests.append(Request(int(w[0]), w[1], int(w[2]), int(w[3]), int(w[4]), int(w[5]), w[6],
                                w[7], int(w[8]), int(w[9])))
    return requests


def read_log(path):
    lines = []
    for line in path.read_text().splitlines():
        w = line.split(" ")
        lines.append(Line(w[0], int(w[1]), w[2], int(w[3]), int(w[4]), int(w[5])))
    return lines


class Verdict:
    """`faults` has a sentence for each kind of thing that went wrong; empty: all was right. `crashes`:
    processes died or stopped, and what that may cost is no fault."""

    def __init__(self, requests, lines, moves, terms, first_id, rate, crashes=False):
        self.crashes = crashes
        self.requests = requests
        self.moves = moves
        self.faults = []
        self._count_failed()
        self._count_executions(lines)
        self._check_terms(lines, terms)
        self._check_load(first_id, rate)
        self._measure()

    def _fault(self, count, what, examples=()):
        if count:
            shown = "".join(f"\n    {example}" for example in list(examples)[:EXAMPLES])
            self.faults.append(f"{count} {what}{shown}")

    def _when(self, at):
        """An instant beside the nearest move, for people."""
        if not self.moves:
            return ""
        nearest = min(self.moves, key=lambda m: abs(m.asked - at))
        return f"{(at - nearest.asked) / MS:+.1f} ms from move {self.moves.index(nearest) + 1}"

    def _count_failed(self):
        failed = [r for r in self.requests if r.result != "ok"]
        self.failed = len(failed)
        self.results = collections.Counter(r.result for r in failed)
        if self.crashes:
            failed = [r for r in failed if r.result not in OF_A_CRASH]
        self._fault(len(failed), "requests failed", (
            f"{r.result}: {r.kind} id {r.id} at gate {r.gate + 1}, sent {self._when(r.sent)}, "
            f"after {r.latency:.1f} ms" for r in failed))

    def _count_executions(self, lines):
        executed = collections.defaultdict(list)
        begun = collections.defaultdict(list)
        for line in lines:
            (executed if line.what in "EW" else begun)[line.id].append(line)
        # What reached two applications was sent twice, whatever came of it.
        twice = {i for group in (executed, begun) for i, found in group.items() if len(found) > 1}
        if self.crashes:
            twice &= {r.id for r in self.requests if r.kind.startswith("POST")}
        self.twice = len(twice)
        self._fault(self.twice, "requests executed or sent twice",
                    (executed.get(i, []) + begun.get(i, []) for i in sorted(twice)))
        wrong = [line for line in lines if line.what == "W"]
        self._fault(len(wrong), "requests reached an application with a wrong body", wrong)
        lost = [r for r in self.requests if r.result == "ok" and r.id not in executed]
        self.lost = len(lost)
        self._fault(self.lost, "acknowledged requests were never executed", lost)
        other = [r for r in self.requests if r.result == "ok" and r.id in executed and
                 all((r.app, r.token) != (e.app, e.token) for e in executed[r.id])]
        self._fault(len(other), "requests were answered by another than who executed them", other)

    def _check_terms(self, lines, terms):
        """In the order of the log, which is the order of time: tokens never fall, each is one
        application's, namely that of the sidecar which acquired it; no sequence number is twice. What
        an application still works on when its sidecar dies, no sidecar can recall: in crashes it is
        the beginning that counts."""
        highest, wrong, sequences = 0, [], collections.Counter()
        for line in lines:
            if not self.crashes or line.what == "B":
                if line.token < highest or terms.get(line.token) != line.app:
                    wrong.append(line)
                highest = max(highest, line.token)
            if line.what in "EW":
                sequences[line.token, line.sequence] += 1
        self.out_of_term = len(wrong)
        self._fault(self.out_of_term, "requests reached an application outside its sidecar's term",
                    wrong)
        repeated = [key for key, count in sequences.items() if count > 1]
        self._fault(len(repeated), "pairs of token and sequence stamped more than one request",
                    repeated)

    def _check_load(self, first_id, rate):
        """Did the client really send what it says, all the time?"""
        ids = [r.id for r in self.requests]
        if ids != list(range(first_id, first_id + len(ids))) or not ids:
            self.faults.append("the client's record has holes")
            return
        seconds = (self.requests[-1].scheduled - self.requests[0].scheduled) / 1e9
        if abs(len(ids) - 1 - seconds * rate) > 1:
            self.faults.append(f"{len(ids)} requests in {seconds:.2f} s are not {rate} a second")

    def _measure(self):
        latencies = [r.latency for r in self.requests if r.result == "ok"]
        lateness = sorted(r.lateness for r in self.requests if r.sent)
        self.overall = percentiles(latencies)
        self.late = (lateness[len(lateness) * 99 // 100], lateness[-1]) if lateness else (0, 0)
        around, steady = [[] for _ in self.moves], []
        index = 0
        for r in self.requests:  # in the order of their schedule, as the moves are
            if r.result != "ok":
                continue
            while index < len(self.moves) and \
                    self.moves[index].done + AFTERMATH_NS < r.scheduled:
                index += 1
            hit = [k for k in range(index, len(self.moves)) if self.moves[k].asked <= r.done]
            for k in hit:
                around[k].append(r.latency)
            if not hit:
                steady.append(r.latency)
        self.steady = percentiles(steady)
        # What a move cost the request that it cost most.
        self.added = [max(each) - self.steady[0] for each in around if each]
        self.refused = sum(r.refused for r in self.requests)

    def figures(self):
        """One line for people."""
        text = (f"{len(self.requests)} requests, {len(self.moves)} moves: {self.failed} failed, "
                f"{self.twice} executed twice, {self.lost} lost, {self.out_of_term} out of term")
        if self.added:
            text += (f"; added delay worst {max(self.added):.0f} ms, median "
                     f"{statistics.median(self.added):.0f} ms")
        if any(m.took for m in self.moves):
            text += f" (a move took {statistics.median(m.took for m in self.moves):.0f} ms)"
        p50, p99, longest = self.overall
        return (text + f"; p50 {p50:.1f} p99 {p99:.1f} max {longest:.0f} ms, without moves p50 "
                f"{self.steady[0]:.1f} p99 {self.steady[1]:.1f} max {self.steady[2]:.0f} ms; sent "
                f"late by p99 {self.late[0]:.1f} max {self.late[1]:.0f} ms; {self.refused} connects refused "
                "and passed on")


def percentiles(values):
    """(p50, p99, max); zeros of nothing."""
    if not values:
        return 0.0, 0.0, 0.0
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100], ordered[-1]


def judge(scene, load, moves, crashes=False):
    """Ends the load and judges the run."""
    record = load.stop()
    return Verdict(read_record(record), read_log(scene.log), moves, scene.terms(), load.first_id,
                   load.rate, crashes)
