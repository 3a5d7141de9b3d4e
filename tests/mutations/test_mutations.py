"""Each deliberate fault of the table is caught by the simulator's checkers, and the judge of it can itself fail."""

import os
import pathlib

import pytest

from mutations import table
from mutations.mutant import Edit, Mutant, read_limits
from mutations.run import Runner, checkers_of

CLOCK = "tests/simulation/clock.cc"   # any small source of the simulator


def build_folder():
    return pathlib.Path(os.environ["LEASEHOLD_BIN"]).resolve().parent


@pytest.fixture(scope="module")
def runner():
    runner = Runner(build_folder(), jobs=int(os.environ.get("LEASEHOLD_JOBS", len(os.sched_getaffinity(0)))))
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def verdicts(runner, request):
    """All that were selected start together; each case waits for its own."""
    selected = [item.callspec.params["mutant"] for item in request.session.items
                if item.path == request.path and hasattr(item, "callspec")]
    return {mutant.name: runner.start(mutant) for mutant in selected}


def test_the_source_as_it_is_built_and_run_the_same_way_breaks_no_rule(runner):
    assert runner.start_control(table.MUTANTS).result().fault == ""


@pytest.mark.parametrize("mutant", table.MUTANTS, ids=lambda mutant: mutant.name)
def test_caught(mutant, verdicts):
    verdict = verdicts[mutant.name].result()
    print(f"caught after {verdict.after} of {verdict.limit} seeds by \"{verdict.rule}\"")
    assert verdict.fault == ""


def one(old, new, rules=("some rule",)):
    return Mutant("for the test", "nothing", (Edit(CLOCK, old, new),), rules)


def test_a_mutation_whose_text_is_gone_is_told_as_such(runner):
    fault = runner.judge(one("this text stands nowhere", "x"), seeds=1).fault
    assert f"{CLOCK}: the text to replace is found 0 times" in fault


def test_a_mutation_whose_text_stands_twice_is_told_as_such(runner):
    fault = runner.judge(one("base_true_ = at;", "base_true_ = 0;"), seeds=1).fault
    assert "must be there exactly once" in fault


def test_a_mutant_that_does_not_compile_fails(runner):
    fault = runner.judge(one("stopped_ = true;", "stopped_ = no_such_name;"), seeds=1).fault
    assert "does not compile" in fault and "no_such_name" in fault


def test_a_mutant_that_changes_nothing_survives_and_that_is_a_failure(runner):
    fault = runner.judge(one("stopped_ = true;", "stopped_ = !false;"), seeds=20).fault
    assert "it survived 20 seeds" in fault


def test_a_mutant_that_is_caught_by_an_unrelated_rule_fails(runner):
    mutant = next(mutant for mutant in table.MUTANTS if mutant.name == "a retry reuses the beat")
    fault = runner.judge(Mutant(mutant.name, mutant.breaks, mutant.edits, ("another rule",))).fault
    assert "caught by a rule that has nothing to do with it" in fault


def test_a_header_is_mutated_in_every_source_that_reads_it(runner):
    never = Mutant("for the test", "a gate opens", (
        Edit("src/lease/permit.h", "return valve_ == Valve::kOpen && now < expiry_;", "return no_such_name;"),), ("",))
    assert "no_such_name" in runner.judge(never, seeds=1).fault


def test_every_mutant_has_a_limit_of_some_times_what_was_measured():
    limits = read_limits()
    assert set(limits) == {mutant.name for mutant in table.MUTANTS}
    for name, limit in limits.items():
        assert limit.seeds >= 5 * limit.measured, name
        assert limit.seeds <= max(40, 16 * limit.measured), name


def test_every_rule_that_the_table_names_is_a_checkers_or_a_check_of_the_source():
    known = checkers_of()
    for mutant in table.MUTANTS:
        for rule in mutant.rules:
            named = rule.startswith("CHECK failed: ") or any(known_rule.startswith(rule) for known_rule in known)
            assert named, f"{mutant.name}: {rule}"
