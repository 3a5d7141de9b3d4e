"""What a run was, as a table for people."""

import collections
import statistics

from .checker import EXCUSES, UNHEARD
from .records import SECOND


def _ms(values):
    return f"worst {max(values) * 1000:.0f} ms, median {statistics.median(values) * 1000:.0f} ms " \
        f"({len(values)})" if values else "none"


def takeovers(checker):
    """(planned, others): seconds from the last request that arrived under one token to the first under
    the next that any did."""
    first, last = {}, {}
    for a in checker.arrivals:
        if (a.token, a.process) in checker.forgetful:
            continue
        first.setdefault(a.token, a.arrived)
        last[a.token] = a.arrived
    reason = {term.token: term.reason for term in checker.evidence.terms}
    planned, others = [], []
    tokens = sorted(first)
    for before, after in zip(tokens, tokens[1:]):
        gap = max(0, first[after] - last[before]) / SECOND
        kind = planned if reason.get(before, "").startswith("lease.released") else others
        kind.append(gap)
    return planned, others


def table(checker):
    """Lines."""
    e = checker.evidence
    faults = collections.Counter(line["kind"] for line in e.lines("fault"))
    roads = collections.Counter(line["kind"] for line in e.lines("road"))
    planned, others = takeovers(checker)
    results = collections.Counter((r.kind, r.result) for r in e.requests)
    kinds = collections.Counter(r.kind for r in e.requests)
    regressions = sum(event.name == "token_regression" or event.reason == "token_regression" or
                      event.get("event") == "lease.token_regression"
                      for log in e.logs.values() for _, event in log)
    absent = sum(event.reason in ("absent", "store_regressed") for log in e.logs.values()
                 for _, event in log if event.name == "lease.lost")
    lines = [("scene", f"{e.scene['store']}, {e.scene['roads']}, seed {e.scene['seed']}, "
              f"{(e.ended - e.began) / SECOND:.0f} s, TTLs "
              + " ".join(f"{n['ttl']:g}" for n in e.nodes.values())
              + f" s, raw gate {e.scene['raw_standby']}"),
             ("faults", f"{sum(faults.values())} in {len(e.storms)} storms: "
              + ", ".join(f"{k} {n}" for k, n in faults.most_common()))]
    if roads:
        lines.append(("roads", ", ".join(f"{k} {n}" for k, n in roads.most_common())))
    ends = collections.Counter(term.reason for term in e.terms)
    lines += [
        ("terms", f"{checker.counts['acquisitions']}: ended by "
         + ", ".join(f"{k or 'the end of the run'} {n}" for k, n in ends.most_common())),
        ("takeovers", f"planned (released): {_ms(planned)}; others: {_ms(others)}"),
        ("back after storms", _ms(checker.back)),
        ("availability", f"{availability(checker):.2f} % of web requests, storms and what follows "
         f"them included; in calms {checker.calm[0]} of {checker.calm[1]}; longest gap "
         f"{max(checker.gaps, default=0) / SECOND:.2f} s"),
        ("requests", f"{len(e.requests)}: " + ", ".join(f"{k} {n}" for k, n in kinds.items())
         + f"; acknowledged {checker.counts['acknowledged']}")]
    for kind in kinds:
        failed = {result: n for (k, result), n in results.items() if k == kind and result != "ok"}
        lines.append((f"not ok: {kind}", ", ".join(
            f"{r} {n}" for r, n in sorted(failed.items(), key=lambda x: -x[1])) or "none"))
    lines += [
        ("overlaps", f"{len(checker.overlaps)}; excused: "
         + ", ".join(f"{excuse} {len(checker.excused[excuse])}" for excuse in EXCUSES)),
        ("twice, lost", f"{checker.counts['twice']}, {checker.counts['lost']}"),
        ("fence", f"{checker.counts['fenced']} refusals"),
        ("lost writes", f"{len(e.lost_writes)} in the store; {regressions} x token_regression and "
         f"{absent} x lost to absent or store_regressed told; "
         f"{len(checker.forgetful)} terms of processes that could not know; "
         f"{checker.counts['repairs']} repairs by the operator"),
        ("store's log", f"{checker.counts[UNHEARD]} of {len(checker.arrivals)} requests {UNHEARD} "
         f"(it was down, or heard by nobody)" if e.grants else "none: judged by the sidecars' alone"),
        ("sidecars' memory", ", ".join(f"{name} {before >> 10} -> {checker.rss[1].get(name, 0) >> 10}"
                                       for name, before in checker.rss[0].items()) + " KiB")]
    return [f"  {name:<18} {text}" for name, text in lines]


def availability(checker):
    return 100 * sum(r.ok for r in checker.web) / len(checker.web) if checker.web else 0.0


def print_report(checker, say):
    """The violations first, then what the run was, then one line."""
    for fault in checker.faults:
        say(f"VIOLATION {fault}")
    if checker.faults:
        say(f"  the records: {checker.evidence.directory}")
    for line in table(checker):
        say(line)
    planned, others = takeovers(checker)
    e = checker.evidence
    say(f"chaos {e.scene['store']}/{e.scene['roads']} seed {e.scene['seed']}: "
        f"{'clean' if not checker.faults else f'{len(checker.faults)} VIOLATIONS'}: "
        f"{len(e.lines('fault'))} faults, {len(planned)} planned moves, {len(others)} failovers, "
        f"{len(e.requests)} requests, {len(checker.overlaps)} overlaps, {checker.counts['twice']} "
        f"twice, {checker.counts['lost']} lost, {checker.counts['fenced']} refused by the fence, "
        f"{availability(checker):.1f} % available")
