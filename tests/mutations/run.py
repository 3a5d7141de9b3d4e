"""Builds and runs mutants until the simulator catches them, and judges what came of it."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from mutations.build import Builder, DoesNotCompile
from mutations.mutant import ROOT, Stale, read_limits

RUN_SECONDS_MAX = 900   # a busy machine runs a tenth of its seeds
CONTROL_SEEDS = 3000   # as many as the longest-lived mutants are given, about
CRASHED = "the program crashed"


@dataclass
class Verdict:
    name: str
    fault: str = ""        # why the test fails; "" if it does not
    rule: str = ""         # the rule that was seen broken
    what: str = ""
    after: int = 0         # seeds until then
    limit: int = 0         # seeds that were allowed
    streams: list = field(default_factory=list)   # `after` of each stream of seeds
    seconds: float = 0     # of all: compiling, linking, running


def checkers_of(root=ROOT):
    """rule -> the file that states it. A rule is a string literal of a checker or of the simulator itself."""
    rules = {}
    for file in sorted((root / "tests" / "simulation").glob("*.cc")):
        joined = re.sub(r'"\s*\n\s*"', "", file.read_text())
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', joined):
            if " " in literal:
                rules.setdefault(literal.replace('\\"', '"'), file.name)
    return rules


def read_output(output):
    """(seed, rule, what) of the failure that the simulator printed; seed None: it printed none."""
    seed = re.search(r"^FAILED seed (\d+)", output, re.M)
    rule = re.search(r"^rule: (.*)$", output, re.M)
    what = re.search(r"^what: (.*)$", output, re.M)
    return (int(seed[1]) if seed else None, rule[1] if rule else "", what[1] if what else "")


class Runner:
    def __init__(self, build, jobs):
        self._limits = read_limits()
        self._builder = Builder(build)
        self._pool = ThreadPoolExecutor(max_workers=jobs)

    def close(self):
        self._pool.shutdown(wait=True, cancel_futures=True)

    def start(self, mutant, first_seeds=(1,), seeds=0):
        """A future Verdict; seeds 0: the limit that is stated."""
        return self._pool.submit(self.judge, mutant, first_seeds, seeds)

    def start_control(self, mutants):
        """The same files, unmutated, built and run the same way: nothing may be found."""
        return self._pool.submit(self._control, mutants)

    def judge(self, mutant, first_seeds=(1,), seeds=0):
        """With several streams of seeds, the verdict is of the last; `streams` has what each took."""
        verdict = Verdict(mutant.name)
        if not seeds and mutant.name not in self._limits:
            verdict.fault = "limits.txt states no number of seeds for it: run tests/mutations/mutants.py --measure"
            return verdict
        verdict.limit = seeds or self._limits[mutant.name].seeds
        began = time.monotonic()
        into = pathlib.Path(tempfile.mkdtemp(prefix="leasehold-mutant-"))
        try:
            program = self._builder.build(mutant.sources(), into)
            for first_seed in first_seeds:
                simulate(program, first_seed, verdict)
                self._find_fault(mutant, verdict)
                if verdict.fault:
                    break
                verdict.streams.append(verdict.after)
        except Stale as stale:
            verdict.fault = str(stale)
        except DoesNotCompile as broken:
            verdict.fault = f"this mutant is none, for it does not compile: {broken}"
        finally:
            shutil.rmtree(into, ignore_errors=True)
        verdict.seconds = time.monotonic() - began
        return verdict

    @staticmethod
    def _find_fault(mutant, verdict):
        if not verdict.fault and not verdict.rule:
            verdict.fault = (f"it survived {verdict.limit} seeds: no checker sees that \"{mutant.breaks}\" no longer "
                             f"holds; the checkers have a hole")
        elif verdict.rule and not verdict.rule.startswith(mutant.rules):
            verdict.fault = (f"caught by a rule that has nothing to do with it, at seed {verdict.after}: "
                             f"\"{verdict.rule}\" ({verdict.what}); expected one of {list(mutant.rules)}")

    def _control(self, mutants):
        verdict = Verdict("control", limit=CONTROL_SEEDS)
        began = time.monotonic()
        files = {edit.file for mutant in mutants for edit in mutant.edits}
        into = pathlib.Path(tempfile.mkdtemp(prefix="leasehold-mutant-"))
        try:
            simulate(self._builder.build({file: (ROOT / file).read_text() for file in sorted(files)}, into), 1, verdict)
        except DoesNotCompile as broken:
            verdict.fault = str(broken)
        finally:
            shutil.rmtree(into, ignore_errors=True)
        verdict.seconds = time.monotonic() - began
        if verdict.rule:
            verdict.fault = (f"the source as it is breaks \"{verdict.rule}\" at seed {verdict.after} ({verdict.what}): "
                             f"what the mutants show is worth nothing until that is mended")
        return verdict


def simulate(program, first_seed, verdict):
    """Runs seeds until one fails; verdict.rule stays empty if none does."""
    verdict.rule = verdict.what = ""
    try:
        done = subprocess.run([str(program), "--seeds", str(verdict.limit), "--first-seed", str(first_seed)],
                              capture_output=True, text=True, timeout=RUN_SECONDS_MAX, errors="replace")
    except subprocess.TimeoutExpired:
        verdict.fault = f"it ran for {RUN_SECONDS_MAX} s without an end: a loop that the simulator does not see"
        return
    if done.returncode == 0:
        return
    seed, verdict.rule, verdict.what = read_output(done.stdout + "\n" + done.stderr)
    if seed is not None:
        verdict.after = seed - first_seed + 1
    if verdict.rule:
        return
    check = re.search(r"CHECK failed.*", done.stderr)
    verdict.rule = check[0] if check else CRASHED
    verdict.what = done.stderr.strip()[-300:]
