"""What a store that loses acknowledged writes may do to tokens, and what it may not: which terms it
excuses, which a process's own log forbids, which repairs of an operator it explains."""

from .evidence import GRAIN
from .records import LOG_GRAIN, SECOND, told_of_a_loss

# An acquisition confirmed more than one renew_interval after it was sent renews first (DESIGN 2.2), so
# its line comes at most that long after its write: 0.33 s at the longest TTL; the rest is the machine's.
LOGGED_LATE = SECOND // 2


class Tokens:
    """`forgetful`: the terms, as (token, process), whose token was given out again after a loss, to a
    process that could not know. `wrong` and `known`: those that nothing excuses, in sentences."""

    def __init__(self, evidence):
        self._evidence = evidence
        self._grants = {key: min((at for at, state, _ in each if state == "held"), default=None)
                        for key, each in evidence.grants.items()}
        self.known = self._own_knowledge()
        self.forgetful, self.wrong = set(), []
        terms = evidence.terms
        for i, term in enumerate(terms):
            # The latest is the hardest to excuse: a loss before it gave out its token, not this one.
            before = next((t for t in reversed(terms[:i]) if t.token >= term.token), None)
            if before is None:
                continue
            if self.lost_between(before, term):
                self.forgetful.add((term.token, term.process))
            else:
                self.wrong.append(f"{term} after {before}")

    def successors(self, key):
        """The terms that a forgetful one must not outlive: no loss lies between them."""
        term = next(t for t in self._evidence.terms if (t.token, t.process) == key)
        return {(t.token, t.process) for t in self._evidence.terms
                if t.begin > term.begin and t.token > term.token and not self.lost_between(term, t)}

    def lost_between(self, before, after):
        """By the store's own time of their writes, where it heard them."""
        granted = self._grants.get((before.token, before.process))
        since = before.begin - LOGGED_LATE if granted is None else granted - GRAIN
        granted = self._grants.get((after.token, after.process))
        until = after.begin if granted is None else min(after.begin, granted + GRAIN)
        return any(since <= over and at <= until for at, over, _ in self._evidence.lost_writes)

    def _own_knowledge(self):
        """A process never takes a token that it held or saw before, whatever the store says."""
        wrong = []
        for node, log in self._evidence.logs.items():
            process, highest = "", 0
            for at, event in log:
                if at > self._evidence.ended:
                    continue
                if event.name == "sidecar.starting":
                    process, highest = event.get("process", ""), 0
                elif event.name == "lease.acquired":
                    if event["process"] != process:
                        process, highest = event["process"], 0
                    if event.token <= highest:
                        wrong.append(f"{node}, process {process}: acquired {event.token} at {at}, "
                                     f"and knew of {highest}")
                    highest = max(highest, event.token)
                # Its own attempt, whose answer was lost, it may find in the record first.
                elif event.name == "lease.observed" and event.get("process") != process:
                    highest = max(highest, event.token)
        return wrong

    def unexplained_repairs(self):
        """Repairs for which no store had lost a write in that storm, or of which no sidecar had told,
        or of a term that had its token by right."""
        e = self._evidence
        told = [at for log in e.logs.values() for at, event in log if told_of_a_loss(event)]
        wrong = []
        for line in e.lines("operator"):
            storm = max((begin["at"] for begin in e.lines("storm.begin")
                         if begin["at"] <= line["at"]), default=0)
            losses = [at for at, _, how in e.lost_writes
                      if storm <= at <= line["at"] and "operator" not in how]
            why = None
            if not losses:
                why = "no store had lost a write"
            elif not any(losses[0] - LOG_GRAIN <= at <= line["at"] + LOG_GRAIN for at in told):
                why = "no sidecar had told of the loss"
            elif not any(t.node == line["node"] and t.token == line["token"] and
                         (t.token, t.process) in self.forgetful for t in e.terms):
                why = "its token was not one given out again"
            if why:
                wrong.append(f"{why}: {line['node']} held {line['token']}, the fence had seen "
                             f"{line['highest']}, at {line['at']}")
        return wrong
