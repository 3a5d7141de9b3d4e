"""Starts that cannot work, starts that must wait, and ends: exit codes and sentences."""

import json
import os
import signal
import socket
import subprocess
import time

import pytest

from harness.client import get
from harness.pair import http_gate
from harness.process import free_port
from harness.sidecar import binary
from harness.wait import wait_for, watch_for

USAGE = 2


def end_of(one, seconds=10):
    """Runs it to its end; (exit code, log)."""
    one.start(ready=False)
    code = one.process.wait(seconds)
    return code, one.log_path.read_text()


def errors(one):
    return [e for e in one.events() if e["level"] == "error"]


# ---- places that are taken, or cannot be ----

def test_a_gates_port_in_use_is_2_and_names_gate_address_and_reason(sidecar, app, tmp_path, things):
    taken = things.enter_context(socket.create_server(("127.0.0.1", 0)))
    port = taken.getsockname()[1]
    one = sidecar("s1", tmp_path / "store",
                  gates=[http_gate(app("a"), listen=f"127.0.0.1:{port}")])
    code, log = end_of(one)
    assert code == USAGE, log
    assert len(errors(one)) == 1, log
    for word in (f"127.0.0.1:{port}", "web", "in use"):
        assert word in errors(one)[0]["msg"], log
    assert not one.events("lease.acquired"), "it must not take a lease it cannot serve"


def test_the_apis_port_in_use_is_2_and_says_so(sidecar, tmp_path, things):
    taken = things.enter_context(socket.create_server(("127.0.0.1", 0)))
    port = taken.getsockname()[1]
    one = sidecar("s1", tmp_path / "store", more={"admin": {"listen": f"127.0.0.1:{port}"}})
    code, log = end_of(one)
    assert code == USAGE, log
    assert len(errors(one)) == 1 and f"127.0.0.1:{port}" in errors(one)[0]["msg"], log
    assert "in use" in log and "admin.listen" in errors(one)[0]["msg"], log


def test_a_port_taken_while_standing_by_releases_the_lease_for_another(
        sidecar, tcp_echo, redis_server, things):
    """A tcp gate with `refuse` binds when the lease comes. If it cannot, somebody else must serve."""
    store = redis_server()
    port = free_port()
    taken = things.enter_context(socket.create_server(("127.0.0.1", port)))
    echo = tcp_echo()
    one = sidecar("s1", store, gates=[{"name": "web", "type": "tcp", "upstream": echo.address,
                                       "listen": f"127.0.0.1:{port}"}]).start()
    failed = one.wait_event("gate.start_failed", 5)
    assert f"127.0.0.1:{port}" in failed["msg"] and "in use" in failed["msg"], failed
    one.wait_event("lease.released", 3)
    two = sidecar("s2", store, gates=[{"name": "web", "type": "tcp", "upstream": echo.address}])
    two.start().wait_active(5)
    assert one.running() and not one.holding()
    two.stop()
    taken.close()
    one.wait_event("gate.opened", 35, since=time.time())


def test_a_signal_socket_of_a_living_process_is_refused_and_a_dead_ones_is_replaced(
        sidecar, tmp_path):
    one = sidecar("s1", tmp_path / "store").start()
    two = sidecar("s2", tmp_path / "store", more={"signal": {"socket": one.socket_path}})
    code, log = end_of(two)
    assert code == USAGE, log
    assert one.socket_path in errors(two)[0]["msg"], log
    assert "another process listens there" in errors(two)[0]["msg"], log
    assert one.signal_reader().lines[0][1]["event"] == "hello", "the living one keeps its socket"
    one.kill9()
    assert os.path.exists(one.socket_path)
    two.start()
    assert two.running()


@pytest.mark.parametrize("path", ["{file}/store", "/proc/leasehold", "/dev/null"])
def test_a_file_store_where_nothing_can_be_written_is_2_and_names_the_directory(
        sidecar, tmp_path, path):
    (tmp_path / "file").write_text("x")
    path = path.format(file=tmp_path / "file")
    one = sidecar("s1", {"type": "file", "file.dir": path})
    code, log = end_of(one)
    assert code == USAGE, log
    assert len(errors(one)) == 1 and path in errors(one)[0]["msg"], log


def test_a_file_store_without_write_permission_is_2(sidecar, tmp_path):
    place = tmp_path / "store"
    place.mkdir(mode=0o555)
    # root may write everywhere: it gives that up for this run.
    drop = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"] \
        if os.geteuid() == 0 else []
    one = sidecar("s1", place)
    one.start(ready=False, wrap=drop)
    code = one.process.wait(10)
    assert code == USAGE, one.tail()
    assert len(errors(one)) == 1 and str(place) in errors(one)[0]["msg"], one.tail()


def test_a_token_file_that_is_missing_or_empty_is_2(sidecar, tmp_path):
    for name, content in (("missing", None), ("empty", "\n")):
        path = tmp_path / name
        if content is not None:
            path.write_text(content)
        one = sidecar(f"s-{name}", tmp_path / "store", more={"admin": {"token_file": path}})
        code, log = end_of(one)
        assert code == USAGE, log
        assert str(path) in log


def test_a_state_dir_of_a_living_sidecar_or_with_a_damaged_note_is_2(
        sidecar, tmp_path, redis_server):
    store = redis_server()
    place = tmp_path / "state"
    one = sidecar("s1", store, more={"node": {"state_dir": place}}).start()
    one.wait_active()
    two = sidecar("s2", store, more={"node": {"state_dir": place}})
    code, log = end_of(two)
    assert code == USAGE, log
    assert len(errors(two)) == 1 and str(place) in errors(two)[0]["msg"], log
    assert "in use" in errors(two)[0]["msg"], log
    assert one.holding()
    assert one.stop() == 0
    note = next(p for p in place.iterdir() if p.name.endswith(".json"))
    for damage in ("", "{", "[]", '{"format":9}', "\x00" * 100):
        note.write_text(damage)
        code, log = end_of(two)
        assert code == USAGE, (damage, log)
        assert str(note) in errors(two)[-1]["msg"], log
    unwritable = sidecar("s3", store, more={"node": {"state_dir": "/proc/leasehold"}})
    code, log = end_of(unwritable)
    assert code == USAGE and "/proc/leasehold" in errors(unwritable)[0]["msg"], log


# ---- stores that do not answer yet ----

@pytest.mark.parametrize("how", ["closed_port", "resets", "silent", "unknown_host"])
def test_a_redis_that_cannot_be_reached_at_start_is_said_once_and_waited_for(
        sidecar, app, fault_proxy, redis_server, how):
    store = redis_server()
    proxy = fault_proxy(store)
    options = {"type": "redis", "redis.url": proxy.url, "redis.connect_timeout": "300ms",
               "redis.command_timeout": "500ms"}
    if how == "closed_port":
        store.kill()
        options["redis.url"] = store.url
    elif how == "resets":
        proxy.refuse()
    elif how == "silent":
        proxy.black_hole()
    else:
        options["redis.url"] = "redis://no-such-host.invalid:6379/0"
    one = sidecar("s1", options, gates=[http_gate(app("a"))]).start(ready=False)
    one.wait_event("store.degraded", 10)
    one.wait_event("admin.listen", 1)
    since = len(one.events())
    watch_for(one.running, 2.0, one.tail)
    said = [e for e in one.events("store.degraded")]
    assert len(said) == 1, [e["msg"] for e in said]
    assert options["redis.url"].split("/")[2] in said[0]["msg"] or "127.0.0.1" in said[0]["msg"]
    assert len(one.events()) - since <= 5, "a line for every attempt fills a disk"
    assert one.admin("/livez").status == 200
    assert get(one.gate()).status == 503
    if how == "unknown_host":
        assert one.stop() == 0
        return
    at = time.time()
    if how == "closed_port":
        store.start()
    proxy.refuse(False)
    proxy.black_hole(False)
    one.wait_active(6, since=at)
    assert get(one.gate()).body == b"a 1"
    wait_for(lambda: one.events("store.recovered", since=int(at)), 2, one.tail)
    assert one.stop() == 0


def test_a_redis_that_wants_a_password_is_told_with_its_remedy(sidecar, redis_server):
    store = redis_server()
    store.cli("CONFIG", "SET", "requirepass", "s3cr3t-word")
    one = sidecar("s1", store).start(ready=False)
    said = one.wait_event("store.degraded", 5)
    assert "NOAUTH" in said["msg"] and "password" in said["msg"], said
    watch_for(one.running, 0.5, one.tail)
    assert not one.events("lease.acquired")
    assert one.stop() == 0


# ---- two of one name ----

def test_a_second_process_of_the_same_node_id_is_told_and_only_one_holds(
        sidecar, app, redis_server):
    store = redis_server()
    one = sidecar("twin", store, gates=[http_gate(app("a"))]).start()
    one.wait_active()
    # The same node id, in a directory of its own.
    two = sidecar("other", store, gates=[http_gate(app("b"))], more={"node": {"id": "twin"}}).start()
    duplicate = two.wait_event("node.duplicate_id", 3 * 2)
    assert duplicate["level"] == "warn" and "node.id" in duplicate["msg"]
    assert one.holding() and not two.holding()
    assert get(two.gate()).status == 503
    # The precondition of a step-down names node id and token; the standby of the same name is not it.
    refused = two.step_down(expected={"expected_node_id": "twin", "expected_token": "1"})
    assert refused.status in (409, 412), refused.body
    assert one.holding()
    at = time.time()
    one.kill9()
    two.wait_active(6, since=at)
    assert two.token() == 2


# ---- ends ----

def test_sigterm_and_sigint_step_down_and_end_with_0(sidecar, redis_server):
    store = redis_server()
    for number, name in ((signal.SIGTERM, "t"), (signal.SIGINT, "i")):
        one = sidecar(f"s-{name}", store).start()
        one.wait_active(5)
        one.send_signal(number)
        assert one.process.wait(5) == 0
        assert store.record()["state"] == "released"
        assert one.events("sidecar.stopped")[0]["exit_code"] == "0"


@pytest.mark.parametrize("first, second", [(signal.SIGTERM, signal.SIGTERM),
                                           (signal.SIGINT, signal.SIGINT)])
def test_a_second_signal_ends_it_at_once_with_1(sidecar, tmp_path, first, second):
    one = sidecar("s1", tmp_path / "store", lease={"step_down_grace": "30s"}).start()
    one.wait_active()
    told = one.signal_reader()
    told.send(op="register")  # and never says drained: the drain lasts
    told.wait_answer("register", 2)
    one.send_signal(first)
    one.wait_event("lease.draining", 2)
    watch_for(one.running, 0.3, one.tail)
    at = time.time()
    one.send_signal(second)
    assert one.process.wait(5) == 1
    assert time.time() - at < 1
    assert not one.events("lease.released")


def test_kill_9_is_not_caught_and_a_standby_and_a_starting_one_end_with_0(
        sidecar, redis_server, fault_proxy):
    store = redis_server()
    one = sidecar("s1", store).start()
    one.wait_active()
    two = sidecar("s2", store).start()
    wait_for(lambda: two.status()["record"], 5, "the standby reads")
    at = time.time()
    assert two.stop() == 0
    assert time.time() - at < 1, "a standby has nothing to wait for"
    assert one.holding()
    one.kill9()
    assert one.process.exit_code() == -signal.SIGKILL
    proxy = fault_proxy(store)
    proxy.black_hole()
    starting = sidecar("s3", proxy).start(ready=False)
    starting.wait_event("sidecar.starting", 5)
    at = time.time()
    assert starting.stop() == 0
    assert time.time() - at < 3, "a store that says nothing must not hold up the end"


def test_sigterm_with_a_frozen_store_ends_by_the_permit(sidecar, redis_server):
    store = redis_server()
    one = sidecar("s1", store).start()
    one.wait_active()
    store.freeze()
    at = time.time()
    assert one.stop(10) == 0
    took = time.time() - at
    store.cont()
    assert took < 2 * 2 + 1, f"{took:.3f} s: grace, then one ttl of trying to release"


def test_fail_if_held_ends_with_1_beside_a_living_holder_only(sidecar, redis_server):
    store = redis_server()
    one = sidecar("s1", store).start()
    one.wait_active()
    two = sidecar("s2", store, lease={"fail_if_held": True})
    code, log = end_of(two)
    assert code == 1, log
    assert "s1" in log
    one.kill9()
    two.start().wait_active(6)


def test_the_config_file_may_be_given_by_environment_alone(sidecar, tmp_path):
    """${VAR} in the file: the same image for every pod."""
    one = sidecar("s1", tmp_path / "store", more={"node": {"id": "${LH_TEST_POD}"}},
                  env={"LH_TEST_POD": "pod-7"}).start()
    one.wait_active()
    assert one.admin("/v1/status").json()["node"]["node_id"] == "pod-7"


def test_log_format_json_is_one_object_a_line(sidecar, tmp_path):

    one = sidecar("s1", tmp_path / "store", more={"log": {"format": "json"}}).start(ready=False)
    wait_for(lambda: "lease.acquired" in one.log_path.read_text(), 5, one.tail)
    assert one.stop() == 0
    lines = [json.loads(l) for l in one.log_path.read_text().splitlines()]
    assert {"ts", "level", "event"} <= set(lines[0])
    assert any(l["event"] == "lease.released" for l in lines)


# ---- standard streams that whoever started it has closed ----

STREAMS = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]


def without(streams, *arguments, **options):
    """The program started with these descriptors closed."""
    closing = " ".join(f"{fd}>&-" for fd in streams)
    return subprocess.Popen(["sh", "-c", f'exec "$0" "$@" {closing}', binary(),
                             *map(str, arguments)], **options)


@pytest.mark.parametrize("streams", STREAMS, ids=str)
def test_closed_standard_streams_are_filled_before_a_socket_gets_their_number(sidecar, tmp_path, things, streams):
    """Their numbers would go to sockets, which would then be sent the log, and libuv would abort."""
    one = sidecar("s1", tmp_path / "store")
    running = without(streams, "run", "-c", one.config_path, stderr=subprocess.DEVNULL)
    things.callback(running.kill)
    wait_for(lambda: os.path.exists(one.socket_path), 10, "it answers")
    for fd in streams:
        assert os.readlink(f"/proc/{running.pid}/fd/{fd}") == "/dev/null"
    running.terminate()
    assert running.wait(10) == 0
    version = without(streams, "version", stdout=subprocess.DEVNULL)
    # A closed standard output must not look like success.
    assert version.wait(10) == (1 if 1 in streams else 0)
