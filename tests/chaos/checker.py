"""The rules, each an independent reading of a promise, over the records of a run (evidence.py).

What a rule excuses it says, and counts. The excuses are four, and a fence covers each of them:
- a store that lost acknowledged writes can give a token out again to a process that never saw the
  first (DESIGN 9): a "forgetful" term, once for each loss that stands in the journal (tokens.py);
- a process stopped between the check of its permit and the write that follows acts once at the thaw;
- what a process that was killed had left of a body to its kernel to send goes on its way (an
  application that was stopped takes it late);
- a gate with on_loss = "finish" finishes what was in flight: a body that comes slowly.
"""

import bisect
import collections

from .evidence import AT_ONCE, GRAIN, Evidence
from .nemesis import QUIET, serves_within, well_within
from .records import DIED, LOG_GRAIN, SECOND
from .tokens import Tokens

EXAMPLES = 4
# Why an arrival may be late.
FORGETFUL, THAW = "under a forgetful term", "at a thaw"
DEAD_KERNEL, FINISHED = "sent by a dead one's kernel", "finished after the term"
EXCUSES = (FORGETFUL, THAW, DEAD_KERNEL, FINISHED)
# Answers which promise that nothing was done.
NOTHING_DONE = {"not_holding", "expired", "hold_full", "hold_timeout", "leaving", "peer_not_admitted"}
# What a served request may take in a calm: its own work of up to 200 ms, a slow machine.
CALM_LATENCY = 2 * SECOND
# MONITOR is deaf while its server is down, or paused when it comes back. In 13 minutes: for 6 %.
UNHEARD, UNHEARD_MAX = "not judged by the store's log", 0.3


class Checker:
    """`faults`: a sentence for each kind of violation, with examples; empty: all was right."""

    def __init__(self, directory):
        self.evidence = Evidence(directory)
        self.faults = []
        self.counts = collections.Counter()
        self.excused = collections.defaultdict(set)  # excuse: ids
        e = self.evidence
        self.by_term = {(term.token, term.process): term for term in e.terms}
        self.post = {r.id for r in e.requests if r.post}
        self.kind = {r.id: r for r in e.requests}
        self.arrivals = sorted((a for a in e.executed if a.what == "B"), key=lambda a: a.arrived)
        for rule in (self._acquisitions, self._repairs, self._order, self._effects,
                     self._inside_terms, self._granted, self._logs_overlap, self._executions, self._promises,
                     self._raw, self._sequences, self._preconditions, self._processes,
                     self._availability, self._memory, self._whole):
            rule()

    def _fault(self, found, what):
        found = list(found)
        if found:
            shown = "".join(f"\n      {self._at(each)}" for each in found[:EXAMPLES])
            self.faults.append(f"{len(found)} {what}{shown}")

    def _at(self, each):
        """With the time since the run's begin, for people."""
        at = getattr(each, "arrived", None) or getattr(each, "begin", None) or \
            getattr(each, "sent", None)
        return f"[{(at - self.evidence.began) / 1e9:8.3f} s] {each}" if at else str(each)

    # ---- who may act ----

    def _acquisitions(self):
        """Tokens strictly rise over acquisitions, in the order of time."""
        self.tokens = Tokens(self.evidence)
        self.forgetful = self.tokens.forgetful
        self.counts["acquisitions"] = len(self.evidence.terms)
        self._fault(self.tokens.wrong, "acquisitions did not raise the token, and no store had lost "
                    "a write since the one before")
        self._fault(self.tokens.known, "processes acquired a token that they had held or seen")

    def _repairs(self):
        self.counts["repairs"] = len(self.evidence.lines("operator"))
        self._fault(self.tokens.unexplained_repairs(),
                    "repairs of the operator are not explained by a lost write")

    def _excused(self, arrival):
        """"" when it must have been inside its holder's right; else which excuse it has."""
        asked = self.kind.get(arrival.id)
        term = self.by_term.get((arrival.token, arrival.process))
        if term is None or asked is None:
            return ""
        if term.reason == DIED:
            if arrival.arrived > term.end and not asked.plain:
                return DEAD_KERNEL
        elif asked.kind == "hold" and asked.sent <= term.end and (
                not asked.plain or arrival.arrived <= term.end + AT_ONCE):
            # What came in one piece left in one piece: its head was never so long under way.
            return FINISHED
        thaw = self.evidence.thawed(term.node, arrival.arrived)
        if thaw is not None and thaw[1] - GRAIN <= arrival.arrived <= thaw[1] + AT_ONCE:
            return f"{THAW} of {term.node} until {thaw[1]}"
        return ""

    def _judge(self, late, what):
        """Of arrivals that came too late: violations are told, excuses are counted, one a request."""
        wrong, thaws = [], set()
        for arrival in late:
            excuse = self._excused(arrival)
            if excuse.startswith(THAW):
                # One that was on its way; a second one was let through after the thaw.
                if excuse in thaws:
                    wrong.append(arrival)
                    continue
                thaws.add(excuse)
            if excuse:
                self.excused[excuse.partition(" of ")[0]].add(arrival.id)
            else:
                wrong.append(arrival)
        self._fault(wrong, what)
        return wrong

    def _order(self):
        """No request reaches an application under a lower token, or under the same of another
        process, after one under a higher had."""
        late, seen, i, served = [], [], 0, set()
        highest, holder = 0, ""
        after = {key: self.tokens.successors(key) for key in self.forgetful}
        for arrival in self.arrivals:
            while i < len(seen) and seen[i].arrived + GRAIN < arrival.arrived:
                key = (seen[i].token, seen[i].process)
                served.add(key)
                if seen[i].token > highest and key not in self.forgetful:
                    highest, holder = seen[i].token, seen[i].process
                i += 1
            key = (arrival.token, arrival.process)
            if key in self.forgetful:
                # Of its token alone: in its own term and grant it must be like all others, and so
                # toward those that came after it without another loss.
                if after[key] & served:
                    late.append(arrival)
                else:
                    self.excused[FORGETFUL].add(arrival.id)
            elif arrival.token < highest or (arrival.token == highest and
                                             arrival.process != holder):
                late.append(arrival)
            seen.append(arrival)
        self.overlaps = self._judge(
            late, "requests reached an application under a lower token than one before: OVERLAP")

    def _effects(self):
        """Behind the fence, in the order in which it happened: nobody after a higher one."""
        highest, holder, wrong = 0, "", []
        for effect in self.evidence.executed:
            if effect.what not in "EW":
                continue
            if effect.token < highest or (effect.token == highest and effect.process != holder):
                wrong.append(effect)
            else:
                highest, holder = effect.token, effect.process
        self.counts["fenced"] = sum(a.what == "F" for a in self.evidence.executed)
        self._fault(wrong, "effects were let through the fence after a higher token's")

    def _inside_terms(self):
        """Each lies in a term of its own application's sidecar, as that sidecar logged it."""
        late, foreign = [], []
        for arrival in self.arrivals:
            term = self.by_term.get((arrival.token, arrival.process))
            if term is None or term.node != self.evidence.node_of[arrival.app]:
                foreign.append(arrival)
            elif not term.begin - LOG_GRAIN - GRAIN <= arrival.arrived <= term.end + GRAIN:
                late.append(arrival)
        self._fault(foreign, "requests bear a token that their sidecar never acquired")
        self._judge(late, "requests reached an application outside its sidecar's term")

    def _granted(self):
        """Within one TTL of a write that the store itself says it carried out for this token and
        process, and not after the release."""
        e = self.evidence
        if not e.grants:
            if e.scene["store"] == "redis":
                self.faults.append("the store's log has no grant at all: MONITOR heard nothing")
            return
        late = []
        longest = max(ttl for each in e.grants.values() for _, _, ttl in each)
        for arrival in self.arrivals:
            if e.deaf.touch(arrival.arrived - longest, arrival.arrived):
                self.counts[UNHEARD] += 1
                continue
            grants = e.grants.get((arrival.token, arrival.process), [])
            at = bisect.bisect_right(grants, (arrival.arrived + GRAIN, "~")) - 1
            before = bisect.bisect_right(grants, (arrival.arrived - GRAIN, "~")) - 1
            released = before >= 0 and grants[before][1] == "released"
            if at < 0 or released or sum(grants[at][::2]) + GRAIN < arrival.arrived:
                late.append(arrival)
        self._judge(late, "requests were served without a grant of the store's")
        unheard = self.counts[UNHEARD]
        if unheard > UNHEARD_MAX * len(self.arrivals):
            self.faults.append(f"{unheard} of {len(self.arrivals)} requests could not be judged by the "
                               "store's log: MONITOR heard too little")

    def _logs_overlap(self):
        """One sidecar's gates are shut before another's open, unless it was stopped meanwhile."""
        terms = self.evidence.terms
        wrong = [f"{last} and {term}" for i, term in enumerate(terms) for last in terms[:i]
                 if last.shut > term.begin + 2 * LOG_GRAIN and
                 not self._one_is_forgetful(last, term) and
                 not self._stopped_until_noticed(last, term.begin)]
        self._fault(wrong, "terms overlap in the sidecars' logs")

    def _one_is_forgetful(self, last, term):
        """And the store lost the record of the first before it gave out the second."""
        return bool({(t.token, t.process) for t in (last, term)} & self.forgetful) and \
            self.tokens.lost_between(last, term)

    def _stopped_until_noticed(self, term, since):
        """Its own word that it was over came late because it was stopped when the other began, and
        it came at once after."""
        return any(begin <= since and term.shut <= end + 5 * AT_ONCE
                   for begin, end in self.evidence.stopped[term.node].spans)

    # ---- what was done ----

    def _executions(self):
        done, begun = collections.Counter(), collections.Counter()
        by = collections.defaultdict(set)
        wrong = []
        for a in self.evidence.executed:
            if a.what in "EW":
                done[a.id] += 1
                by[a.id].add(a.app)
            elif a.what == "B":
                begun[a.id] += 1
            if a.what == "W":
                wrong.append(a)
        posts = [r for r in self.evidence.requests if r.post and r.kind != "raw"]
        twice = [r for r in posts if done[r.id] > 1 or begun[r.id] > 1]
        acknowledged = [r for r in self.evidence.requests if r.ok and r.kind != "raw"]
        lost = [r for r in acknowledged if not done[r.id]]
        other = [r for r in acknowledged if done[r.id] and r.app not in by[r.id]]
        self.counts.update(twice=len(twice), lost=len(lost), acknowledged=len(acknowledged))
        self._fault(twice, "POSTs were executed or sent twice")
        self._fault(lost, "acknowledged requests were never executed: LOST")
        self._fault(other, "requests were answered by another than who executed them")
        self._fault(wrong, "requests reached an application with a wrong body")
        self._fault([r for r in self.evidence.requests if r.result.startswith(("wrong", "unasked"))],
                    "answers were not what was asked for")

    def _promises(self):
        """An answer that says nothing was done is right. (A GET may have been, and be asked again.)"""
        begun = {a.id for a in self.evidence.executed if a.what in "BEW"}
        self._fault([r for r in self.evidence.requests if r.post and r.result.startswith("status_503/") and
                     r.result.partition("/")[2] in NOTHING_DONE and r.id in begun],
                    "requests were answered with \"nothing was done\", and it was")

    def _raw(self):
        """Lines over raw TCP: at most once, acknowledged ones exactly once, each inside a term."""
        done = collections.defaultdict(list)
        late = []
        for a in self.evidence.executed:
            if a.what != "T":
                continue
            done[a.id].append(a)
            node = self.evidence.node_of[a.app]
            inside = any(t.node == node and t.begin - LOG_GRAIN - GRAIN <= a.arrived <= t.end + GRAIN
                         for t in self.evidence.terms)
            thaw = self.evidence.thawed(node, a.arrived)
            if inside:
                continue
            if thaw is not None and thaw[1] - GRAIN <= a.arrived:
                self.excused[THAW].add(a.id)
            else:
                late.append(a)
        lines = [r for r in self.evidence.requests if r.kind == "raw"]
        self._fault(late, "lines reached an application outside its sidecar's term")
        self._fault([r for r in lines if len(done[r.id]) > 1], "lines were executed twice")
        self._fault([r for r in lines if r.ok and r.app not in [a.app for a in done[r.id]]],
                    "acknowledged lines were never executed by who answered: LOST")

    def _sequences(self):
        """One request each. (A GET whose reused connection died without an answer goes again, as the
        same request under the same triple; a POST that did would be found by _executions.)"""
        stamped = collections.defaultdict(set)
        for a in self.evidence.executed:
            if a.what == "B":
                stamped[a.token, a.process, a.sequence].add(a.id)
        self._fault([key for key, ids in stamped.items() if len(ids) > 1],
                    "triples of token, process and sequence stamped more than one request")

    def _preconditions(self):
        e = self.evidence
        self._fault([line for line in e.lines("step_down.answered") if not line["right"] and
                     line["ok"]], "step-downs with a wrong precondition were carried out")
        asked = {(line["expected_node"], line["expected_token"])
                 for line in e.lines("step_down.asked") if line["right"]}
        drained = [(node, event.token) for _, node, event in e.events("lease.draining")
                   if event.reason == "requested"]
        self.counts["planned moves"] = len(drained)
        self._fault([each for each in drained if each not in asked],
                    "terms were stepped down that nobody had asked for")

    # ---- whether it was there ----

    def _processes(self):
        """No sidecar ends or complains by itself."""
        bad = []
        for name in self.evidence.nodes:
            told = None
            for line in self.evidence.journal:
                if line.get("node") != name:
                    continue
                if line["what"] == "sidecar.started":
                    told = None
                elif line["what"] == "sidecar.killed":
                    told = {-9}
                elif line["what"] == "sidecar.told_to_end":
                    # 1: told twice, it left a lease behind; TERM itself: before it could be told.
                    told = {0, -15} if told is None else {0, 1, -15}
                elif line["what"] == "sidecar.ended" and line["code"] not in (told or ()):
                    bad.append(f"{name} ended with {line['code']} (told: {told})")
            bad += [f"{name}: {text}" for text in self.evidence.stray_lines(name)]
        self._fault(bad, "sidecars ended or complained by themselves")

    def _availability(self):
        """After the last fault of each storm somebody serves within the bound; then nothing fails."""
        e = self.evidence
        ttl = max([node["ttl"] for node in e.nodes.values()] +
                  [line["ttl"] for line in e.lines("sidecar.ttl")])
        serves, well = serves_within(ttl) * SECOND, well_within(ttl) * SECOND
        web = sorted((r for r in e.requests if r.kind == "web"), key=lambda r: r.scheduled)
        served = sorted(r.done for r in web if r.ok)
        self.back, late, failed = [], [], []
        judged = {"web", "raw"} if e.scene["raw_standby"] != "hold" else {"web"}
        rest = [r for r in e.requests if r.kind in judged]
        for number, (_, end, calm) in enumerate(e.storms):
            i = bisect.bisect_left(served, end)
            took = (served[i] if i < len(served) else calm) - end
            self.back.append(took / SECOND)
            if took > serves:
                late.append(f"storm {number + 1}: {took / SECOND:.2f} s until somebody served "
                            f"(bound {serves / SECOND:.2f} s)")
            failed += [r for r in rest if end + well <= r.scheduled <= calm - QUIET / 4 * SECOND and
                       (not r.ok or r.done - r.scheduled > CALM_LATENCY)]
        quiet = [r for r in web if any(
            end + well <= r.scheduled <= calm - QUIET / 4 * SECOND for _, end, calm in e.storms)]
        self.calm = (sum(r.ok for r in quiet), len(quiet))
        self._fault(late, "storms after which nobody served in time")
        self._fault(failed, "requests failed or waited in a calm, when all was well again")
        self.web = web
        self.gaps = [b - a for a, b in zip(served, served[1:])]

    def _memory(self):
        """Of processes that lived long enough to tell."""
        marks = self.evidence.lines("rss")
        self.rss = (marks[0]["bytes"], marks[-1]["bytes"]) if marks else ({}, {})
        grown = [f"{name}: {before >> 10} KiB at first, {self.rss[1][name] >> 10} KiB in the end"
                 for name, before in self.rss[0].items() if name in self.rss[1] and
                 self.rss[1][name] > before + self.evidence.scene["rss_growth_max"]]
        self._fault(grown, "sidecars grew")

    def _whole(self):
        """The client's record has no holes, and there is something to judge."""
        for kind in ("web", "hold"):
            ids = sorted(r.id for r in self.evidence.requests if r.kind == kind)
            if ids and ids != list(range(ids[0], ids[0] + len(ids))):
                self.faults.append(f"the record of {kind} requests has holes")
            elif not ids and kind == "web":
                self.faults.append("the record of web requests is missing")
        if not self.evidence.lines("end"):
            self.faults.append("the run was ended before its end: what was under way has no record")
        if not self.counts["acknowledged"] or not self.evidence.terms:
            self.faults.append("nothing was served: there is nothing to judge")


def check(directory):
    return Checker(directory)
