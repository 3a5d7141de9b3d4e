"""Hooks: told in order, with what they need, and waited for by nothing but a planned release
(CASES 11)."""

import os
import time

import pytest

from harness.client import get
from harness.measured import measured
from harness.pair import Pair, http_gate
from harness.wait import wait_for, watch_for

TTL = 2.0
GRACE = 1.0
MARGIN = 0.04  # 2 % of the TTL
LAG = 0.3      # of a busy machine


class Told:
    """What a sidecar's hooks wrote, a line each."""

    def __init__(self, directory):
        self.path = directory / "told"
        self.directory = directory

    def hook(self, words, then=""):
        """A hook's text that notes `words` (of the shell), then does more."""
        return f"sh -c 'echo {words} >> {self.path}; {then}'"

    def endless(self, name):
        """One that notes its process id and never ends, whatever one tells it."""
        return self.hook(name, f'trap "" TERM; echo $$ > {self.directory}/{name}.pid; '
                               "while :; do sleep 100; done")

    def pid(self, name):
        path = self.directory / f"{name}.pid"
        wait_for(lambda: path.exists() and path.read_text().endswith("\n"), 5, f"{name} runs")
        return int(path.read_text())

    def lines(self):
        return self.path.read_text().splitlines() if self.path.exists() else []

    def wait(self, lines, seconds=5):
        wait_for(lambda: self.lines() == lines, seconds, lambda: f"{lines}, told: {self.lines()}")


@pytest.fixture
def told(tmp_path):
    return Told(tmp_path)


@pytest.fixture
def one(sidecar, app, redis_server):
    """one(hooks, **options) -> a sidecar with them, holding, and its store as `.redis`."""
    def make(hooks, more=None, **options):
        store = redis_server()
        made = sidecar("s1", store, gates=[http_gate(app("a"))],
                       more={"hooks": hooks, **(more or {})}, **options)
        made.redis = store
        made.start().wait_active()
        return made
    return make


def gone(pid):
    return not os.path.exists(f"/proc/{pid}")


def hook_runs(side, hook, result):
    return side.metric("leasehold_hook_runs_total", hook=hook, result=result)


def test_a_life_is_told_in_order_with_its_names_and_its_tokens(one, told):
    words = "$LEASE_NAME $LEASE_STATE $FENCING_TOKEN .$LEASE_REASON. $LEASE_NODE_ID"
    side = one({name: told.hook(words) for name in ("on_active", "on_draining", "on_standby")})
    told.wait(["app active 1 .. s1"])
    assert side.step_down().json()["outcome"] == "taken_back_by_this_process"
    told.wait(["app active 1 .. s1", "app draining 1 .requested. s1", "app standby 1 .requested. s1",
               "app active 2 .. s1"])
    assert side.stop() == 0
    assert told.lines()[4:] == ["app draining 2 .shutdown. s1", "app standby 2 .shutdown. s1"]


def test_the_grace_that_is_left_the_process_and_no_descriptor_of_ours_reach_the_hook(one, told):
    side = one({"on_active": told.hook("$GRACE_MS $LEASE_PROCESS_ID"),
                "on_draining": told.hook("$GRACE_MS", f"ls -l /proc/self/fd > {told.directory}/fds"),
                "on_standby": told.hook("$GRACE_MS")},
               more={"node": {"state_dir": told.directory / "state"}})
    process = side.admin("/v1/status").json()["node"]["process_id"]
    told.wait([f"0 {process}"])
    side.step_down(take_back=False)
    wait_for(lambda: len(told.lines()) == 3, 5, "three hooks")
    grace = int(told.lines()[1])
    assert GRACE * 1000 - LAG * 1000 < grace <= GRACE * 1000
    assert told.lines()[2] == "0"
    fds = (told.directory / "fds").read_text()
    assert "state" not in fds and "socket:" not in fds and "redis" not in fds, fds


def test_what_the_sidecar_was_started_with_reaches_no_hook(sidecar, tmp_path, told):
    held = tmp_path / "held"
    side = sidecar("s1", tmp_path / "store", more={"hooks": {
        "on_active": told.hook("active", f"ls -l /proc/self/fd > {told.directory}/fds")}})
    side.start(wrap=("sh", "-c", f'exec 9> {held}; exec "$@"', "sh"))
    side.wait_event("hook.ended", 5, hook="on_active", result="ok")
    assert str(held) in os.readlink(f"/proc/{side.pid}/fd/9")
    assert str(held) not in (told.directory / "fds").read_text()


def test_gates_act_before_the_hook(one, told):
    side = one({"on_active": told.hook("active"), "on_standby": told.hook("standby")})
    side.wait_event("hook.started", 5, hook="on_active")
    side.step_down(take_back=False)
    side.wait_event("hook.started", 5, hook="on_standby")
    names = [line.name for line in side.events()]
    assert names.index("gate.opened") < names.index("hook.started")
    assert names.index("gate.closed") < len(names) - 1 - names[::-1].index("hook.started")
    told.wait(["active", "standby"])


def test_a_planned_release_waits_for_on_draining(one, told):
    side = one({"on_draining": told.hook("draining", f"while ! [ -e {told.directory}/go ]; do "
                                                     "sleep 0.02; done")})
    at = time.time()
    side.step_down(take_back=False, wait=False)
    told.wait(["draining"])
    watch_for(lambda: not side.events("lease.released"), 0.4, side.tail)
    assert side.redis.record()["state"] in ("held", "draining")
    (told.directory / "go").touch()
    released = side.wait_event("lease.released", 1)
    assert released.at - at < GRACE
    assert hook_runs(side, "on_draining", "ok") == 1


def test_case_11_an_on_draining_that_never_ends_is_forced_at_grace(one, told):
    side = one({"on_draining": told.endless("draining"), "on_standby": told.hook("standby")})
    at = time.time()
    side.step_down(take_back=False, wait=False)
    pid = told.pid("draining")
    released = side.wait_event("lease.released", GRACE + 2)
    assert GRACE - 0.05 < released.at - at < GRACE + LAG
    told.wait(["draining", "standby"])
    wait_for(lambda: gone(pid), 2, "the hook is killed")
    assert side.wait_event("hook.ended", 1, hook="on_draining")["result"] == "ended"
    measured(f"a planned step-down with an on_draining that never ends, grace {GRACE} s: released "
             f"after {(released.at - at) * 1000:.0f} ms")


@pytest.mark.parametrize("state", ["active", "draining"])
def test_case_11_a_loss_during_a_hook_that_never_ends_shuts_by_expiry(one, told, state):
    side = one({f"on_{state}": told.endless(state), "on_standby": told.hook("standby")},
               lease={"step_down_grace": "1s" if state == "active" else "10s",
                      "step_down_hold_off": "2s"})
    if state == "draining":
        side.step_down(take_back=False, wait=False)
    pid = told.pid(state)
    side.redis.freeze()
    frozen = time.time()
    lost = side.wait_event("lease.lost", TTL + 1)
    assert lost.at - frozen < TTL - MARGIN + LAG
    assert get(side.gate()).status == 503
    wait_for(lambda: gone(pid), 2, "the hook is killed")
    told.wait([state, "standby"])
    side.redis.cont()
    measured(f"a loss during an on_{state} that never ends, ttl {TTL} s: shut "
             f"{(lost.at - frozen) * 1000:.0f} ms after the store froze")


def test_at_exit_on_standby_runs_and_does_not_delay_the_release(one, told):
    side = one({"on_standby": told.hook("standby", f"sleep 1; echo undone >> {told.path}")})
    at = time.time()
    assert side.stop() == 0
    ended = time.time()
    assert told.lines() == ["standby", "undone"]
    released = side.events("lease.released")[0]
    assert released.at - at < 0.7
    assert 0.9 < ended - at < 3


def test_at_exit_a_hook_that_never_ends_costs_no_more_than_the_bound(one, told):
    side = one({"on_active": told.hook("active"), "on_standby": told.endless("standby")})
    told.wait(["active"])
    at = time.time()
    assert side.stop(10) == 0
    assert 4.9 < time.time() - at < 6.5, "five seconds"
    wait_for(lambda: gone(told.pid("standby")), 2, "the hook is killed")


def test_a_second_signal_ends_at_once_and_kills_the_hook(one, told):
    side = one({"on_active": told.hook("active"), "on_standby": told.endless("standby")})
    told.wait(["active"])
    side.send_signal()
    pid = told.pid("standby")
    at = time.time()
    side.send_signal()
    wait_for(lambda: not side.running(), 2, "it ends")
    assert time.time() - at < 1
    wait_for(lambda: gone(pid), 2, "the hook is killed")


def test_case_18_nothing_left_to_do_means_an_exit_within_a_second(one, told):
    side = one({name: told.hook(name) for name in ("on_active", "on_draining", "on_standby")})
    side.step_down(take_back=False)
    told.wait(["on_active", "on_draining", "on_standby"])
    at = time.time()
    assert side.stop() == 0
    assert time.time() - at < 1


def test_a_hook_that_cannot_start_is_a_warning_and_no_more(one):
    side = one({"on_active": "/nowhere/hook --secret=hunter2", "on_draining": "no-such-command",
                "on_standby": "sh -c 'echo it failed; exit 3'"})
    line = side.wait_event("hook.not_started", 2, hook="on_active")
    assert line["level"] == "warn" and "/nowhere/hook" in line["msg"]
    assert get(side.gate()).status == 200
    assert side.step_down(take_back=False).status == 200
    ended = side.wait_event("hook.ended", 2, hook="on_standby")
    assert (ended["result"], ended["exit_code"], ended["output"]) == ("failed", "3", "it failed")
    assert not [line for line in side.events() if "hunter2" in str(line)]
    assert hook_runs(side, "on_active", "not_started") == 1
    assert hook_runs(side, "on_draining", "not_started") == 1
    assert hook_runs(side, "on_standby", "failed") == 1


def test_a_flood_of_output_stops_neither_gate_nor_lease(one, told):
    side = one({"on_active": told.hook("active", "yes so many words")})
    told.wait(["active"])
    begun = side.metric("leasehold_lease_renewals_total", result="ok")
    wait_for(lambda: side.metric("leasehold_lease_renewals_total", result="ok") >= begun + 4, 5,
             "renewals go on")
    assert all(get(side.gate()).status == 200 for _ in range(20))
    side.step_down(take_back=False)
    ended = side.wait_event("hook.ended", 2, hook="on_active")
    assert ended["output"].count("so many words") > 3
    assert len(ended["output"]) < 400


def test_a_planned_move_between_two_tells_each_its_own_side(sidecar, app, redis_server, tmp_path):
    store = redis_server()
    sides = []
    tolds = [Told(tmp_path / "one"), Told(tmp_path / "two")]
    for i, told in enumerate(tolds):
        told.directory.mkdir()
        hooks = {name: told.hook("$LEASE_STATE $FENCING_TOKEN")
                 for name in ("on_active", "on_draining", "on_standby")}
        sides.append(sidecar(f"s{i + 1}", store, gates=[http_gate(app("ab"[i]))],
                             more={"hooks": hooks}))
    both = Pair(*sides, None).start()
    tolds[0].wait(["active 1"])
    both.first.step_down()
    tolds[0].wait(["active 1", "draining 1", "standby 1"])
    tolds[1].wait(["active 2"])


def test_many_quick_step_downs_leave_no_process_behind(one, told):
    side = one({"on_active": told.hook("active", "sleep 30"),
                "on_standby": told.hook("standby", "sleep 0.1")},
               lease={"step_down_grace": "1s", "step_down_hold_off": "2s", "poll_interval": "50ms"})
    other = 1000
    for _ in range(12):  # another holder in the store, then none: lost, and taken again
        token = side.token()
        other = token + 1
        side.redis.write_record(process_id="p-other", node_id="other", token=other, beat=1,
                                state="released")
        side.wait_event("lease.lost", TTL, token=token)
        wait_for(lambda: side.token() > other, TTL + 2, "it is held again")
    children = [p for p in os.listdir("/proc") if p.isdigit() and _parent(p) == side.pid]
    assert len(children) <= 1, children
    side.step_down(take_back=False)
    wait_for(lambda: not [p for p in os.listdir("/proc") if p.isdigit() and _parent(p) == side.pid],
             3, "no child is left")


def _parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0
