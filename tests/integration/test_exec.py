"""`leasehold exec`: what a command sees, what its end means, and how a step-down ends it."""

import json
import signal
import socket
import subprocess

import pytest

from harness.sidecar import binary
from harness.stamps import Stamps, compile_stamper, kill_pid
from harness.wait import wait_for, watch_for


@pytest.fixture(scope="module")
def stamper(tmp_path_factory):
    return compile_stamper(tmp_path_factory.mktemp("stamper"))


@pytest.fixture
def stamps(tmp_path, stamper):
    return Stamps(tmp_path / "stamps", stamper)


@pytest.fixture
def runs(sidecar, tmp_path):
    """runs(command, exec={...}, ...) -> a sidecar on the file store that runs it, started."""
    def make(command, node="s1", ready=True, lease=None, **more):
        made = sidecar(node, tmp_path / "store", command=command, lease=lease,
                       **{"more": {"exec": more.pop("exec", {}), **more.pop("more", {})}, **more})
        return made.start(ready=ready)
    return make


def shell(script):
    return ["sh", "-c", script]


def ends_with(one, code, seconds=10):
    assert one.process.wait(seconds) == code, one.tail()
    return one


# ---- its own end ----

@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_the_commands_end_releases_the_lease_and_its_exit_code_is_passed_on(runs, script, code):
    one = ends_with(runs(shell(script)), code)
    assert one.last("lease.released", token=1), one.tail()
    assert one.last("exec.exited")["level"] == ("info" if code == 0 else "warn")


def test_the_lease_is_free_at_once_for_another_when_the_command_has_ended(runs):
    ends_with(runs(shell("exit 0")), 0)
    other = ends_with(runs(shell("exit 0"), node="s2"), 0)
    assert other.last("lease.acquired")["token"] == "2"


def test_a_command_that_fails_is_started_again_while_it_fails(runs, tmp_path):
    count = tmp_path / "count"
    one = ends_with(runs(shell(f"echo x >> {count}; [ $(wc -l < {count}) -ge 3 ]"),
                         exec={"restart": "on_failure", "restart_delay": "20ms"}), 0)
    assert count.read_text() == "x\n" * 3
    assert [e["pause"] for e in one.events("exec.restart")] == ["20ms", "40ms"]
    assert {e["token"] for e in one.events("exec.started")} == {"1"}


def test_a_command_that_is_always_started_again_ends_with_the_sidecar(runs, tmp_path):
    one = runs(shell("exit 0"), exec={"restart": "always", "restart_delay": "10ms"})
    wait_for(lambda: len(one.events("exec.restart")) >= 3, 5, "restarts")
    assert one.metric("leasehold_exec_starts_total", lease="app") >= 3
    assert one.metric("leasehold_exec_exits_total", result="ok") >= 3
    assert one.stop() == 0


def test_what_the_command_leaves_behind_is_ended_before_the_release(runs, stamps):
    command = stamps.shell(f"@left ignore & setsid @gone ignore & "
                           f"while [ $(ls {stamps.directory} | wc -l) -lt 2 ]; do :; done; exit 4")
    one = ends_with(runs(command, exec={"stop_timeout": "300ms"}), 4)
    assert {life.role for life in stamps.lives()} == {"left", "gone"}
    assert not [life for life in stamps.lives() if life.alive()]
    assert one.last("lease.released", token=1)


# ---- what it sees ----

def test_the_command_has_the_token_and_the_rest_in_its_environment(runs, tmp_path):
    out = tmp_path / "env"
    one = runs(shell(f"env > {out}.new; mv {out}.new {out}; exec sleep 99"),
               env={"FENCING_TOKEN": "forged", "KEPT": "as it was"})
    wait_for(out.exists, 5, "the command has run")
    env = dict(line.split("=", 1) for line in out.read_text().splitlines() if "=" in line)
    node = one.admin("/v1/status").json()["node"]
    assert env["FENCING_TOKEN"] == "1" and env["KEPT"] == "as it was"
    assert env["LEASE_NAME"] == "app" and env["LEASE_STATE"] == "active"
    assert env["LEASE_NODE_ID"] == "s1" and env["LEASE_PROCESS_ID"] == node["process_id"]
    assert env["LEASE_SOCKET"] == one.socket_path
    assert env["LEASE_ADMIN"] == "%s:%d" % one.admin_address
    assert one.stop() == 0


def test_standard_input_and_output_are_ours(runs, tmp_path):
    one = runs(["true"], ready=False)  # for its configuration
    one.process.wait(10)
    done = subprocess.run([binary(), "exec", "-c", one.config_path, "--", "sh", "-c",
                           "read line; echo got $line; echo and here >&2"],
                          input="a line\n", capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 0
    assert done.stdout == "got a line\n"
    assert "and here\n" in done.stderr


def test_status_and_metrics_show_the_command(runs):
    one = runs(["sleep", "99"])
    one.wait_event("exec.started", 5)
    gate = one.status()["gates"][0]
    assert (gate["name"], gate["type"], gate["state"]) == ("exec", "process", "open")
    assert gate["upstream"] == "sleep" and gate["in_flight"] == 1
    assert one.metric("leasehold_exec_running", lease="app") == 1
    assert one.metric("leasehold_exec_starts_total", lease="app") == 1
    assert "sleep" in one.cli("status").stdout


def test_a_process_whose_command_has_ended_says_that_it_shuts_down(runs, tmp_path):
    go = tmp_path / "go"
    one = runs(shell(f"while [ ! -e {go} ]; do sleep 0.02; done"), lease={"step_down_grace": "20s"})
    listener = one.signal_reader()
    listener.send(op="register", name="worker")
    listener.wait_answer("register", 5)
    assert not one.admin("/v1/status").json()["node"]["shutting_down"]
    go.touch()
    one.wait_event("lease.draining", 5)
    assert one.admin("/v1/status").json()["node"]["shutting_down"]
    listener.send(op="drained", lease="app", token="1")
    ends_with(one, 0)


# ---- what cannot be run ----

@pytest.mark.parametrize("command, code, word", [
    (["no-such-command"], 127, "no-such-command"), (["/no/such/path"], 127, "/no/such/path"),
    (["/etc/passwd"], 126, "not executable"), (["/"], 126, "a directory")])
def test_a_command_that_cannot_run_is_told_before_anything_is_competed_for(
        runs, command, code, word, tmp_path):
    one = ends_with(runs(command, ready=False), code)
    assert word in one.tail()
    assert not (tmp_path / "store").exists()


def test_an_interpreter_that_is_missing_gives_the_lease_away_again(runs, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    one = runs([str(script)])
    failed = one.wait_event("exec.start_failed", 5)
    assert "interpreter" in failed["msg"]
    assert one.wait_event("lease.released", 5)["reason"] == "start_failed"
    assert one.metric("leasehold_exec_exits_total", result="not_started") >= 1
    assert one.stop() == 0


@pytest.mark.parametrize("more, leases, word", [
    ({"lease": "other"}, None, "no [[lease]] has this name"),
    ({"stop_timeout": "2s"}, None, "step_down_grace"),
    ({}, [{"name": "a"}, {"name": "b"}], "exec.lease is missing")])
def test_a_configuration_that_cannot_work_is_a_usage_error(sidecar, tmp_path, more, leases, word):
    one = sidecar("s1", tmp_path / "store", command=["true"], leases=leases, more={"exec": more})
    ends_with(one.start(ready=False), 2)
    assert word in one.tail()


def test_a_command_is_needed(tmp_path):
    for words in (["exec"], ["exec", "--"], ["exec", "sleep", "1"]):
        done = subprocess.run([binary(), *words], capture_output=True, text=True, timeout=10,
                              check=False)
        assert done.returncode == 2 and "leasehold: " in done.stderr, words
    done = subprocess.run([binary(), "exec", "--help"], capture_output=True, text=True, timeout=10,
                          check=False)
    assert done.returncode == 0 and "125" in done.stdout and "127" in done.stdout


# ---- stepping down ----

def test_a_planned_step_down_lets_the_command_finish_and_the_other_starts_after_it(
        store_server, sidecar, stamps):
    store = store_server()
    one, two = (sidecar(f"s{i}", store, command=stamps.command("main", "finish", "300"),
                        more={"exec": {"stop_timeout": "900ms"}}) for i in (1, 2))
    one.start().wait_active()
    stamps.wait(1, 5)
    two.start()
    wait_for(lambda: two.status()["record"], 5, "the standby sees the holder")
    assert one.step_down().json()["outcome"] == "taken_over_by_another_process"
    stamps.wait(2, 5)
    gap = stamps.gap(2)
    assert 0 < gap < 0.5
    term, exited = one.last("exec.term"), one.last("exec.exited")
    assert exited["exit_code"] == "0" and 0.29 < exited.at - term.at < 0.6
    assert exited.at <= one.last("lease.released").at
    # The lease comes back: a new term, a new start.
    assert two.step_down().json()["outcome"] == "taken_over_by_another_process"
    stamps.wait(3, 5)
    assert stamps.gap(3) > 0
    one.wait_event("exec.started", 5, token="3")
    assert one.stop() == 0 and two.stop() == 0


def test_a_command_that_does_not_heed_a_term_is_dead_by_the_end_of_the_drain(runs, stamps):
    one = runs(stamps.shell("@main ignore & setsid @gone ignore & wait; wait; wait"),
               exec={"stop_timeout": "600ms"})
    stamps.wait(1, 5, ("main", "gone"))
    one.step_down(take_back=False, wait=False)
    one.wait_event("lease.released", 5)
    draining = one.last("lease.draining")
    assert not [life for life in stamps.lives() if life.alive()]
    assert one.last("lease.released").at - draining.at < 1.0 + 0.2  # step_down_grace
    assert one.last("exec.exited").at - draining.at < 1.0
    assert one.metric("leasehold_exec_exits_total", result="stopped") == 1  # the shell itself


def test_the_command_goes_on_until_listeners_have_drained(runs, stamps):
    one = runs(stamps.command("main", "finish", "0"), exec={"stop_timeout": "300ms"})
    stamps.wait(1, 5)
    listener = one.signal_reader()
    listener.send(op="register", name="worker")
    listener.wait_answer("register", 5)
    one.step_down(take_back=False, wait=False)
    one.wait_event("lease.draining", 5)
    watch_for(lambda: not one.events("exec.term"), 0.15, "TERM although a listener still works")
    listener.send(op="drained", lease="app", token="1")
    term = one.wait_event("exec.term", 5)
    assert term.at - one.last("lease.draining").at < 0.45  # before the end of the grace makes it
    one.wait_event("lease.released", 5)


def test_a_lease_that_nobody_took_comes_back_with_a_new_start(runs, stamps):
    one = runs(stamps.command("main", "finish", "50"), lease={"step_down_hold_off": "1200ms"})
    stamps.wait(1, 5)
    assert one.step_down().json()["outcome"] == "taken_back_by_this_process"
    stamps.wait(2, 5)
    assert stamps.gap(2) > 0
    assert one.stop() == 0


# ---- signals to us ----

def test_sigterm_ends_the_command_releases_and_exits_0(runs, stamps):
    one = runs(stamps.command("main", "finish", "100"))
    stamps.wait(1, 5)
    assert one.stop() == 0
    assert one.last("exec.exited")["exit_code"] == "0"
    assert one.last("lease.released", token=1)


def test_a_second_signal_kills_the_group_at_once(runs, stamps):
    one = runs(stamps.shell("@main ignore & @second ignore & wait; wait"),
               lease={"step_down_grace": "20s"}, exec={"stop_timeout": "15s"})
    lives = stamps.wait(1, 5, ("main", "second"))
    one.send_signal(signal.SIGINT)
    one.wait_event("exec.term", 5)
    one.send_signal(signal.SIGINT)
    ends_with(one, 125, 2)
    wait_for(lambda: not any(life.alive() for life in lives), 1, "the group is dead")
    assert not one.events("lease.released")


def test_a_service_manager_that_signals_every_process_sees_exit_code_0(runs):
    one = runs(["sleep", "99"])
    pid = int(one.wait_event("exec.started", 5)["pid"])
    kill_pid(pid, signal.SIGTERM)
    one.send_signal(signal.SIGTERM)
    ends_with(one, 0)
    assert one.last("lease.released", token=1)


def test_gates_and_command_share_the_lease(redis_server, sidecar, app, stamps):
    """The command opens after the gates and outlives what is in flight in them."""
    one = sidecar("s1", redis_server(), command=stamps.command("main", "finish", "0"),
                  gates=[{"name": "raw", "type": "tcp", "upstream": app("a").address}],
                  lease={"drain_tunnels": "300ms"})
    one.start().wait_active()
    stamps.wait(1, 5)
    opened = one.last("gate.opened", gate="raw")
    assert opened.at <= one.wait_event("exec.started", 5).at
    with socket.create_connection(one.gate("raw")):
        wait_for(lambda: one.status()["gates"][0]["in_flight"] == 1, 5, "a tunnel")
        one.step_down(take_back=False, wait=False)
        term = one.wait_event("exec.term", 5)
        assert term.at - one.last("lease.draining").at > 0.28
    one.wait_event("lease.released", 5)


def test_the_configuration_in_force_shows_how_the_command_is_treated(runs):
    one = runs(["sleep", "99"], exec={"restart": "always"})
    shown = json.loads(one.admin("/v1/config").body)
    assert shown["exec"]["restart"] == "always"
