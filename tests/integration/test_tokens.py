"""Fencing tokens rise strictly, and an old one is never written again (CASES 13, 16)."""

import collections
import random
import threading

import pytest

from harness.measured import measured
from harness.wait import wait_for

# Several leases in the same two processes, moved at the same time: the cases' 100 and 200 rounds in
# a fraction of the time, and leases that must not disturb one another.
LEASES = 10


def leases(**options):
    return [{"name": f"l{i}", "ttl": "2s", "step_down_grace": "500ms", "step_down_hold_off": "1s",
             **options} for i in range(LEASES)]


def holder_of(lease, sidecars):
    return next((s for s in sidecars if s.running() and s.holding(lease)), None)


def step_down(sidecars, lease, outcomes):
    """outcomes[lease] = (token before, the API's answer)."""
    holder = wait_for(lambda: holder_of(lease, sidecars), 10, f"a holder of {lease}")
    before = holder.token(lease)
    outcomes[lease] = (before, holder.step_down(lease).json())


def step_down_all(sidecars):
    """A step-down of every lease at the same time: {lease: (token before, the API's answer)}."""
    outcomes = {}
    threads = [threading.Thread(target=step_down, args=(sidecars, f"l{i}", outcomes))
               for i in range(LEASES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(outcomes) == LEASES, "a step-down was not answered"
    return outcomes


def acquired_tokens(sidecars, lease):
    """The tokens of every term of a lease, in the order of their times."""
    terms = [e for s in sidecars for e in s.events("lease.acquired", every_life=True, lease=lease)]
    return [e.token for e in sorted(terms, key=lambda e: (e.at, e.token))]


def assert_strictly_rising(tokens):
    assert all(a < b for a, b in zip(tokens, tokens[1:])), tokens


def test_case_13_100_acquisitions_and_releases_with_the_store_restarted_between_raise_the_token(
        store_server, sidecar):
    store = store_server(persist=True)
    sidecars = [sidecar(f"s{i}", store, leases=leases()).start() for i in range(2)]
    rounds = 100 // LEASES
    for _ in range(rounds):
        outcomes = step_down_all(sidecars)
        for lease, (before, answer) in outcomes.items():
            assert answer["released_token"] == str(before), answer
            assert int(answer["active_token"]) == before + 1, answer
        store.restart()
    for i in range(LEASES):
        tokens = acquired_tokens(sidecars, f"l{i}")
        assert_strictly_rising(tokens)
        assert tokens == list(range(1, rounds + 2)), tokens
        assert store.record(f"l{i}")["token"] == str(rounds + 1)
    assert not [e for s in sidecars for e in s.events("lease.token_regression")]


@pytest.mark.parametrize("survivors", [1, 2])
def test_case_13_a_store_that_restarts_empty_cannot_set_the_token_back(
        store_server, sidecar, survivors):
    store = store_server()  # keeps nothing
    sidecars = [sidecar(f"s{i}", store).start() for i in range(2)]
    wait_for(lambda: holder_of("app", sidecars), 5, "a first holder")
    for _ in range(3):
        holder = wait_for(lambda: holder_of("app", sidecars), 10, "a holder")
        before = holder.token()
        # Both must have seen the token: what one instance never saw it cannot remember.
        wait_for(lambda: all(s.token() == before for s in sidecars if s.running()), 5,
                 "every instance has seen the token")
        if survivors == 1 and len([s for s in sidecars if s.running()]) == 2:
            holder.kill9()
        store.kill()
        store.start()
        wait_for(lambda: any(s.running() and s.holding() and s.token() > before
                             for s in sidecars), 10, f"a holder above token {before}")
    assert_strictly_rising(acquired_tokens(sidecars, "app"))


def test_case_13_state_dir_remembers_the_token_across_a_restart_of_everything(
        store_server, sidecar, tmp_path):
    store = store_server()
    state_dir = tmp_path / "state"
    state_dir.mkdir()
    one = sidecar("s1", store, more={"node": {"state_dir": state_dir}}).start()
    one.wait_active()
    for token in (1, 2, 3):
        assert one.token() == token
        assert one.stop() == 0
        store.kill()
        store.start()
        one.start()
        one.wait_active(10)
    assert_strictly_rising(acquired_tokens([one], "app"))


@pytest.fixture
def slow_pair(store_server, fault_proxy, sidecar):
    """slow_pair(leases) -> (the store's monitor, proxies, sidecars): answers 0 to 300 ms late."""
    def make(of):
        store = store_server()
        monitor = store.monitor()
        proxies = [fault_proxy(store) for _ in range(2)]
        sidecars = [sidecar(f"s{i}", proxies[i], leases=of).start() for i in range(2)]
        for lease in of:
            wait_for(lambda: holder_of(lease["name"], sidecars), 5, "a first holder")
        dice = random.Random(16)
        for proxy in proxies:
            proxy.reply_delay = lambda: dice.uniform(0, 0.3)
        return monitor, proxies, sidecars
    return make


def test_case_16_200_step_downs_over_slow_answers_never_write_an_old_token_after_its_release(
        slow_pair):
    ttl = 4
    monitor, proxies, sidecars = slow_pair(leases(ttl=f"{ttl}s"))
    outcomes = collections.Counter()
    for _ in range(200 // LEASES):
        for lease, (before, answer) in step_down_all(sidecars).items():
            outcomes[answer["outcome"]] += 1
            assert answer["expected_token"] == str(before)
            wait_for(lambda: holder_of(lease, sidecars), ttl, f"a holder of {lease}")
    assert sum(outcomes.values()) == 200
    check_no_write_after_release(
        [(l.at, l.command) for p in proxies for l in p.writes()], "sent")
    check_no_write_after_release(monitor.lease_writes(), "executed")
    for i in range(LEASES):
        assert_strictly_rising(acquired_tokens(sidecars, f"l{i}"))
    measured(f"case 16: 200 step-downs over answers 0-300 ms late: {dict(outcomes)}; "
             f"{len(monitor.lease_writes())} writes, none of an old token after its release")


def test_case_16_answers_later_than_the_call_time_out_cost_time_but_no_token(slow_pair):
    # 200 ms for a call: every third answer is too late, and its outcome must be found out.
    monitor, proxies, sidecars = slow_pair(leases(ttl="2400ms")[:1])
    for _ in range(10):
        step_down(sidecars, "l0", {})
        wait_for(lambda: holder_of("l0", sidecars), 15, "a holder")
    check_no_write_after_release(
        [(l.at, l.command) for p in proxies for l in p.writes()], "sent")
    check_no_write_after_release(monitor.lease_writes(), "executed")
    assert_strictly_rising(acquired_tokens(sidecars, "l0"))


def check_no_write_after_release(writes, how):
    released = {}  # (lease, token) -> process
    for _, command in sorted(writes, key=lambda w: w[0]):
        lease, token = command.record["lease"], command.token
        if command.state == "released":
            released[(lease, token)] = command.process_id
            continue
        assert (lease, token) not in released, \
            f"{how}: {command.state} of {lease} under token {token} after its release"


def test_on_token_regression_refuse_stops_competing_instead(store_server, sidecar):
    store = store_server()
    one = sidecar("s1", store, lease={"on_token_regression": "refuse"}).start()
    one.wait_active()
    store.write_record(token=9, node_id="other", process_id="e" * 32, beat=1, state="released")
    one.wait_event("lease.lost", 3)
    wait_for(lambda: one.token() == 10, 5, "acquires above what was seen")
    store.write_record(token=3, node_id="other", process_id="e" * 32, beat=2, state="released")
    one.wait_event("lease.token_regression", 3)
    status = wait_for(lambda: one.status()["not_competing"] and one.status(), 5, "does not compete")
    assert "token_regression" in status["not_competing"]
    assert not one.holding()
    assert store.record()["token"] == "3"
    assert one.metric("leasehold_lease_token_regressions_total", lease="app") >= 1
