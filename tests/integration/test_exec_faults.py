"""`leasehold exec` when something breaks: the command of the former holder is dead before the next
holder's command starts, whatever becomes of the former sidecar (CASES 1, exec half).

Commands stamp the boot clock every 0.2 ms (harness/stamper.c); what is compared is the last stamp of
the one side with the first of the other.
"""

import fcntl
import signal
import time

import pytest

from harness.measured import measured
from harness.stamps import Stamps, boot_of, compile_stamper, kill_pid
from harness.wait import wait_for

INTRUDER = {"node_id": "intruder", "process_id": "f" * 32, "beat": "1", "state": "held"}


@pytest.fixture(scope="module")
def stamper(tmp_path_factory):
    return compile_stamper(tmp_path_factory.mktemp("stamper"))


@pytest.fixture
def stamps(tmp_path, stamper):
    return Stamps(tmp_path / "stamps", stamper)


@pytest.fixture
def pair(sidecar):
    """pair(store, command, exec={...}, lease={...}) -> (holder, warm standby), both with it."""
    def make(store, command, **options):
        options = {"exec": {}, "lease": {}, **options}
        one, two = (sidecar(f"s{i}", store, command=command, lease=options["lease"],
                            more={"exec": options["exec"]}) for i in (1, 2))
        one.start().wait_active()
        one.wait_event("exec.started", 5)
        two.start()
        wait_warm(one, two)
        return one, two
    return make


def wait_warm(one, two):
    process = one.admin("/v1/status").json()["node"]["process_id"]
    wait_for(lambda: (two.status()["record"] or {}).get("process_id") == process, 5,
             "the standby sees the holder")


def watchdog_of(one):
    """The sidecar's child that bears the watchdog's name."""
    with open(f"/proc/{one.pid}/task/{one.pid}/children") as f:
        for pid in map(int, f.read().split()):
            with open(f"/proc/{pid}/comm") as comm:
                if comm.read().strip() == "leasehold-guard":
                    return pid
    raise AssertionError("no watchdog")


TREE = "@main & setsid @gone ignore & wait; wait"  # in the group, and out of it


# ---- the sidecar is stopped ----

def test_a_stopped_sidecars_command_is_dead_before_the_others_starts_20_of_20(
        redis_server, pair, stamps):
    """Stopped for longer than the TTL, as a debugger, a full cgroup or Ctrl-Z does it."""
    holder, standby = pair(redis_server(), stamps.shell(TREE),
                           lease={"ttl": "500ms", "step_down_grace": "300ms"})
    gaps = []
    for token in range(2, 22):
        stamps.wait(token - 1, 5, ("main", "gone"))
        holder.freeze()
        stamps.wait(token, 5)
        gaps.append(stamps.gap(token))
        holder.cont()
        holder.wait_event("lease.lost", 5, token=token - 1)
        wait_warm(standby, holder)
        holder, standby = standby, holder
    assert len(gaps) == 20 and min(gaps) > 0, gaps
    measured("exec, sidecar stopped, ttl 500 ms: the next command started "
             f"{min(gaps) * 1000:.0f} to {max(gaps) * 1000:.0f} ms after the last breath of the "
             "former, 20 of 20 after it")
    expired = sum(s.metric("leasehold_exec_exits_total", result="expired") for s in
                  (holder, standby))
    assert expired == 20, "it is the watchdog that killed"


def freeze_outside_a_write(holder, store):
    """When the record was last written before the stop. A process that is stopped within a write keeps
    the register's lock, and nobody can take over until it goes on or dies (README): that
    is not what is looked at here."""
    for _ in range(50):
        written = (store / "leases/leasehold.app.json").stat().st_mtime
        holder.freeze()
        with open(store / "locks/leasehold.app.lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return written
            except BlockingIOError:
                holder.cont()
    raise AssertionError("always in a write")


def test_on_the_file_store_a_stop_keeps_the_lock_so_the_window_decides_and_the_command_is_dead(
        tmp_path, pair, stamps):
    holder, standby = pair(tmp_path / "store", stamps.shell(TREE),
                           lease={"ttl": "700ms", "step_down_grace": "300ms"})
    for token in (2, 3, 4):
        stamps.wait(token - 1, 5, ("main", "gone"))
        frozen = time.time()
        written = freeze_outside_a_write(holder, tmp_path / "store")
        stamps.wait(token, 5)
        assert stamps.gap(token) > 0
        assert standby.wait_active(5, frozen)["token"] == str(token)
        # The standby cannot have seen a write before it was made; a later one would make it wait
        # longer. File times and the log have grains of a few milliseconds.
        waited = standby.last("lease.acquired").at - written
        assert waited > 0.69, f"{waited:.3f} s: taken over by a proof of death of a living process"
        holder.cont()
        holder.wait_event("lease.lost", 5, token=token - 1)
        wait_warm(standby, holder)
        holder, standby = standby, holder


# ---- somebody is killed ----

def test_kill_9_of_the_sidecar_tells_the_command_to_end_at_once(store_server, pair, stamps):
    one, two = pair(store_server(), stamps.command("main", "finish", "200"),
                    exec={"stop_timeout": "1s"})
    stamps.wait(1, 5)
    killed = boot_of(one.kill9())
    stamps.wait(2, 10)
    assert stamps.gap(2) > 0
    ran_on = stamps.lives(1)[0].last - killed
    assert 0.19 < ran_on < 0.6, "TERM at once, and time to finish"
    orphaned = one.events("exec.orphaned", every_life=True)
    assert orphaned and one.events("exec.ended", every_life=True)
    assert two.stop() == 0


def test_kill_9_of_the_sidecar_and_a_command_that_heeds_nothing_ends_by_the_permits_end(
        redis_server, pair, stamps):
    one, two = pair(redis_server(), stamps.shell(TREE.replace("@main", "@main ignore")),
                    lease={"ttl": "1s", "step_down_grace": "20s"}, exec={"stop_timeout": "15s"})
    stamps.wait(1, 5, ("main", "gone"))
    killed = boot_of(one.kill9())
    stamps.wait(2, 10)
    assert stamps.gap(2) > 0
    assert max(life.last for life in stamps.lives(1)) - killed < 1.0
    assert two.running()


def test_kill_9_on_the_file_store_hands_over_when_the_command_is_dead_and_then_at_once(
        tmp_path, pair, stamps):
    one, two = pair(tmp_path / "store", stamps.command("main", "finish", "400"),
                    lease={"ttl": "20s", "step_down_hold_off": "5s"}, exec={"stop_timeout": "1s"})
    stamps.wait(1, 5)
    killed = boot_of(one.kill9())
    stamps.wait(2, 10)
    gap = stamps.gap(2)
    assert stamps.lives(1)[0].last - killed > 0.39
    assert 0 < gap < 0.3, f"{gap:.3f} s after the command's death, with a TTL of 20 s"
    measured(f"exec, kill -9 of the sidecar on the file store: the next command started "
             f"{gap * 1000:.0f} ms after the former had finished")
    assert two.stop() == 0


def test_a_restart_with_a_state_dir_waits_for_the_command_of_the_former_process(
        redis_server, sidecar, tmp_path, stamps):
    # Long beside what a start takes on a busy machine: the second process must find the first's command.
    one = sidecar("s1", redis_server(), command=stamps.command("main", "finish", "2000"),
                  lease={"ttl": "10s", "step_down_grace": "4s"},
                  more={"node": {"state_dir": str(tmp_path / "state")},
                        "exec": {"stop_timeout": "3s"}})
    one.start().wait_active()
    stamps.wait(1, 5)
    one.kill9()
    one.start(ready=False)
    assert one.process.wait(5) == 2
    assert "in use" in one.tail(5)
    wait_for(lambda: not stamps.lives(1)[0].alive(), 5, "it has finished")
    one.start()
    stamps.wait(2, 5)  # no TTL (10 s) is waited for
    assert stamps.gap(2) > 0
    assert one.stop() == 0


def test_kill_9_of_the_watchdog_ends_the_command_and_gives_the_lease_away(
        redis_server, pair, stamps):
    one, two = pair(redis_server(), stamps.shell(TREE))
    stamps.wait(1, 5, ("main", "gone"))
    kill_pid(watchdog_of(one), signal.SIGKILL)
    assert one.process.wait(5) == 125
    stamps.wait(2, 5)
    assert stamps.gap(2) > 0
    assert "watchdog" in one.events("sidecar.stopping")[0]["msg"]
    assert one.last("lease.released", token=1)
    assert two.running()


def test_kill_9_of_a_standbys_watchdog_ends_that_standby(redis_server, pair, stamps):
    one, two = pair(redis_server(), stamps.command())
    kill_pid(watchdog_of(two), signal.SIGKILL)
    assert two.process.wait(5) == 125
    assert one.holding()


def test_kill_9_of_both_takes_the_command_along(redis_server, pair, stamps):
    one, two = pair(redis_server(), stamps.command("main", "ignore"))
    stamps.wait(1, 5)
    watchdog = watchdog_of(one)
    one.freeze()  # neither is to see the other's death
    kill_pid(watchdog, signal.SIGKILL)
    one.kill9()
    stamps.wait(2, 10)
    assert stamps.gap(2) > 0
    assert two.running()


def test_a_stopped_watchdog_keeps_no_lost_lease_going(redis_server, pair, stamps):
    store = redis_server()
    one, _two = pair(store, stamps.shell("@main ignore & wait"))
    stamps.wait(1, 5)
    watchdog = watchdog_of(one)
    kill_pid(watchdog, signal.SIGSTOP)
    try:
        store.write_record(token=2, **INTRUDER)
        one.wait_event("lease.lost", 3)
        wait_for(lambda: not any(life.alive() for life in stamps.lives(1)), 1, "it is dead")
    finally:
        kill_pid(watchdog, signal.SIGCONT)


# ---- the lease is lost ----

def test_case_1_a_holder_cut_off_from_the_store_has_lost_its_whole_group_by_the_permits_end(
        store_server, pair, stamps):
    store = store_server()
    monitor = store.monitor()
    one, two = pair(store, stamps.shell("sleep 999 & " + TREE), lease={"ttl": "3s"},
                    exec={"stop_timeout": "500ms"})
    stamps.wait(1, 5, ("main", "gone"))
    store.freeze()
    last_renewal = [t for t, c in monitor.lease_writes() if c.token == 1][-1]
    one.wait_event("lease.lost", 10)
    wait_for(lambda: not any(life.alive() for life in stamps.lives(1)), 1, "it is dead")
    margin = 0.06  # 2 % of the TTL
    late = max(life.last for life in stamps.lives(1)) - boot_of(last_renewal) - (3.0 - margin)
    assert late < 0, f"breathed {late:.3f} s past the permit's end"
    store.cont()
    stamps.wait(2, 10)
    assert stamps.gap(2) > 0
    measured(f"case 1, exec: the command's last breath was {-late * 1000:.0f} ms before the end of "
             "the permit")
    assert one.running() and two.running()


def test_a_store_that_comes_back_in_time_costs_the_command_nothing(redis_server, pair, stamps):
    store = redis_server()
    one, _two = pair(store, stamps.command(), lease={"ttl": "4s"})
    life = stamps.wait(1, 5)[0]
    store.freeze()
    one.wait_event("lease.at_risk", 10)
    store.cont()
    one.wait_event("lease.restored", 10)
    assert life.alive() and stamps.lives(1)[0].pid == life.pid
    assert not one.events("exec.exited")


def test_another_holders_record_kills_the_command_at_once(store_server, pair, stamps):
    store = store_server()
    one, two = pair(store, stamps.shell(TREE), lease={"ttl": "3s"})
    stamps.wait(1, 5, ("main", "gone"))
    two.stop()
    store.write_record(token=2, **INTRUDER)
    lost = one.wait_event("lease.lost", 3)
    wait_for(lambda: not any(life.alive() for life in stamps.lives(1)), 1, "it is dead")
    late = max(life.last for life in stamps.lives(1)) - boot_of(lost.at)
    assert late < 0.1, f"{late * 1000:.0f} ms after the loss"
    assert one.wait_event("exec.kill", 1)["reason"] == "superseded"
    assert one.running()
    # It competes again, and starts it again under the next token.
    stamps.wait(3, 10, ("main", "gone"))
    assert stamps.gap(3) > 0
