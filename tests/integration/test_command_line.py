"""Subcommands against running sidecars: human and --json output, every documented exit code."""

import json
import re
import shlex
import subprocess
import threading
import time

import pytest

from harness.hostile import CutProxy
from harness.pair import Pair, http_gate
from harness.process import free_port
from harness.raw import Raw
from harness.sidecar import binary
from harness.wait import wait_for

OK, FAILED, USAGE, PRECONDITION, UNREACHABLE, TIMED_OUT, NOT_HOLDER = range(7)


def leasehold(*arguments, timeout=30):
    return subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=timeout, check=False)


def problem(done):
    """The one JSON object of a failed --json call, with the sentence on standard error too."""
    told = json.loads(done.stdout)
    assert told["ok"] is False and told["detail"]
    assert done.stderr.startswith("leasehold: ")
    return told["error"]


@pytest.fixture
def pair(sidecar, app, redis_server):
    def make(**lease):
        store = redis_server()
        apps = (app("a"), app("b"))
        # The name of a proxy before the API, too: it has another port.
        more = {"admin": {"allowed_hosts": ["127.0.0.1"]}}
        return Pair(*(sidecar(f"s{i + 1}", store, gates=[http_gate(apps[i])], lease=lease,
                              more=more) for i in range(2)), apps).start()
    return make


@pytest.fixture
def single(sidecar, app, tmp_path):
    def make(**lease):
        one = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"))], lease=lease).start()
        one.wait_active()
        return one
    return make


def test_status_shows_who_holds_and_how_the_gates_stand(pair):
    both = pair()
    first, second = both.first.cli("status"), both.second.cli("status")
    assert first.returncode == second.returncode == OK
    assert re.search(r"^app\s+active\s+1\s+s1 \(this one\)", first.stdout, re.M), first.stdout
    assert re.search(r"^app\s+standby\s+\S+\s+s1\b(?! \(this)", second.stdout, re.M), second.stdout
    assert re.search(r"^web\s+http\s+open\s+127\.0\.0\.1:\d+", first.stdout, re.M), first.stdout
    assert re.search(r"^store\s.*connected", first.stdout, re.M)
    assert "\x1b" not in first.stdout, "colours are for terminals"
    told = json.loads(both.first.cli("status", "--json").stdout)
    assert told["node"]["node_id"] == "s1"
    assert told["leases"][0]["holder"] == {
        "node_id": "s1", "process_id": told["node"]["process_id"], "token": "1"}
    assert told["leases"][0]["gates"][0]["state"] == "open"


def test_describe_names_the_holder_wherever_it_is_asked(pair):
    both = pair()
    first, second = both.first.cli("describe"), both.second.cli("describe", "app")
    assert first.returncode == second.returncode == OK
    assert re.search(r"^node id\s+s1$", first.stdout, re.M)
    assert re.search(r"^token\s+1$", first.stdout, re.M)
    assert "another process" in second.stdout
    told = json.loads(both.second.cli("describe", "--json").stdout)
    assert told["node_id"] == "s1" and told["token"] == "1" and told["this_process"] is False
    unknown = both.first.cli("describe", "nope", "--json")
    assert unknown.returncode == FAILED and problem(unknown) == "not_found"


def test_describe_is_6_when_nobody_holds_and_3_while_that_is_not_settled(sidecar, app, tmp_path):
    backend = app("a")
    backend.healthy = False
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(backend)],
                  more={"app": {"check": f"http://{backend.address}/healthz",
                                "interval": "100ms", "timeout": "100ms"}}).start()
    one.wait_event("app.unready", 2)
    nobody = one.cli("describe", "--json")
    assert nobody.returncode == NOT_HOLDER and problem(nobody) == "no_holder"
    refused = one.cli("step-down", "--yes")
    assert refused.returncode == NOT_HOLDER, refused.stderr
    backend.healthy = True
    one.wait_active(3)
    one.step_down(wait=False)
    one.wait_event("lease.released", 3)
    unsettled = one.cli("describe", "--json")
    assert unsettled.returncode == PRECONDITION and problem(unsettled) == "failed_precondition"
    assert one.cli("step-down", "--yes").returncode == PRECONDITION


def test_step_down_rules_of_the_precondition(pair):
    both = pair()
    one, two = both.first, both.second
    asked = one.cli("step-down")
    assert asked.returncode == USAGE and "--yes" in asked.stderr, "there is no terminal to ask on"
    assert two.cli("step-down", "--yes").returncode == NOT_HOLDER
    other = one.cli("step-down", "--yes", "--expected-node-id", "s9", "--json")
    assert other.returncode == PRECONDITION and problem(other) == "failed_precondition"
    wrong = one.cli("step-down", "--yes", "--expected-node-id", "s1", "--expected-token", "9")
    assert wrong.returncode == PRECONDITION
    assert one.cli("step-down", "--yes", "--expected-token", "1").returncode == USAGE
    assert one.cli("step-down", "--yes", "--expected-node-id", "s1", "--expected-token",
                   "").returncode == USAGE, "an unset variable must not weaken the precondition"
    assert one.cli("step-down", "nope", "--yes").returncode == FAILED
    assert one.holding() and not one.events("lease.draining"), "nothing was changed"
    done = one.cli("step-down", "app", "--yes")
    assert done.returncode == OK, done.stderr
    assert "expecting node id s1, token 1" in done.stdout
    assert re.search(r"^outcome\s+taken_over_by_another_process$", done.stdout, re.M)
    assert re.search(r"^active node id\s+s2$", done.stdout, re.M), done.stdout
    assert re.search(r"^active token\s+2$", done.stdout, re.M)
    # Back, as JSON; and again with the same values: a retry cannot step down the successor.
    wait_for(lambda: one.state() == "standby", 5, "S1's hold-off is over")
    retry = ("step-down", "--yes", "--expected-node-id", "s2", "--expected-token", "2", "--json")
    told = json.loads(two.cli(*retry).stdout)
    assert told["outcome"] == "taken_over_by_another_process"
    assert (told["expected_node_id"], told["expected_token"]) == ("s2", "2")
    assert (told["released_token"], told["active_token"]) == ("2", "3")
    assert told["active_node_id"] == "s1"
    again = one.cli(*retry)
    assert again.returncode == PRECONDITION
    assert one.holding() and one.token() == 3


def test_step_down_alone_is_taken_back_unless_told_otherwise(single):
    one = single()
    done = one.cli("step-down", "--yes", "--json")
    assert done.returncode == OK
    assert json.loads(done.stdout)["outcome"] == "taken_back_by_this_process"
    assert one.token() == 2
    started = one.cli("step-down", "--yes", "--no-wait", "--no-take-back")
    assert started.returncode == OK and "under way" in started.stdout
    assert one.cli("wait", "--for", "standby", "--timeout", "6s").returncode == OK
    assert one.token() != 3 and len(one.events("lease.acquired")) == 2


def test_a_step_down_that_nobody_takes_over_says_that_it_was_done(single):
    one = single()
    done = one.cli("step-down", "--yes", "--no-take-back")
    assert done.returncode == TIMED_OUT, done
    assert "was released (token 1)" in done.stderr, done.stderr
    assert "restart this one to let it compete" in done.stderr, done.stderr
    assert "try again" not in done.stderr, done.stderr


def test_a_retry_after_an_unknown_outcome_gets_the_recorded_result(pair, things):
    both = pair()
    one = both.first
    proxy = CutProxy(one.admin_address)
    things.callback(proxy.close)
    described = json.loads(one.cli("describe", "--json").stdout)
    proxy.cutting = True
    cut = leasehold("step-down", "app", "--yes", "--admin", proxy.url, "--expected-node-id",
                    described["node_id"], "--expected-token", described["token"], "--json")
    assert cut.returncode in (UNREACHABLE, TIMED_OUT), cut
    told = json.loads(cut.stdout)
    assert told["error"] == "unknown_outcome" and told["outcome"] == "unknown"
    both.second.wait_active(5)
    proxy.cutting = False
    printed = [l.strip() for l in cut.stderr.splitlines() if l.strip().startswith("leasehold step-")]
    assert len(printed) == 1, cut.stderr
    retry = shlex.split(printed[0])[1:]  # with everything that was given
    again = leasehold(*retry, "--json")
    assert again.returncode == OK, again
    assert json.loads(again.stdout)["outcome"] == "taken_over_by_another_process"
    successor = leasehold(*(both.second.admin_url if word == proxy.url else word
                            for word in retry))
    assert successor.returncode == PRECONDITION, successor
    assert both.second.holding() and both.second.token() == 2
    assert len(one.events("lease.draining")) == 1


def test_a_step_down_that_outlasts_its_timeout_is_5_with_the_values_to_retry(single, things):
    one = single(step_down_grace="3s")
    with Raw(one.gate()) as raw:
        raw.send(b"GET /slow?ms=1200 HTTP/1.1\r\nHost: app\r\n\r\n")
        wait_for(lambda: one.status()["gates"][0]["in_flight"] == 1, 2, "one is in flight")
        late = one.cli("step-down", "--yes", "--timeout", "300ms")
        assert late.returncode == TIMED_OUT, late
        assert "--expected-node-id s1 --expected-token 1" in late.stderr
        # The second one for the same term joins the first.
        joined = one.cli("step-down", "--yes", "--expected-node-id", "s1", "--expected-token", "1",
                         "--json")
        assert raw.response().status == 200
    assert joined.returncode == OK, joined
    assert json.loads(joined.stdout)["outcome"] == "taken_back_by_this_process"
    assert len(one.events("lease.draining")) == 1


def test_wait_for_states_timeouts_and_a_sidecar_that_is_not_there_yet(sidecar, tmp_path):
    port = free_port()
    one = sidecar("s1", tmp_path / "store", more={"admin": {"listen": f"127.0.0.1:{port}"}})
    url = f"http://127.0.0.1:{port}"
    results = []
    early = threading.Thread(target=lambda: results.append(
        leasehold("wait", "--for", "active", "--timeout", "20s", "--admin", url)), daemon=True)
    early.start()
    one.start().wait_active()
    early.join(20)
    assert results[0].returncode == OK, results
    late = leasehold("wait", "--for", "draining", "--timeout", "300ms", "--admin", url, "--json")
    assert late.returncode == TIMED_OUT and problem(late) == "timeout"
    assert "it is active" in late.stderr
    told = json.loads(leasehold("wait", "--for", "active", "--admin", url, "--json").stdout)
    assert told["holding"] is True
    assert leasehold("wait", "--for", "active", "nope", "--admin", url).returncode == FAILED
    assert leasehold("wait", "--for", "happy", "--admin", url).returncode == USAGE
    assert leasehold("wait", "--admin", url).returncode == USAGE
    # -c finds the API too.
    assert leasehold("status", "-c", one.config_path).returncode == OK
    one.kill9()
    gone = leasehold("wait", "--for", "active", "--timeout", "300ms", "--admin", url)
    assert gone.returncode == TIMED_OUT


def test_drained_speaks_for_a_listener(single):
    one = single(step_down_grace="10s")
    nothing = leasehold("drained", "--socket", one.socket_path, "--json")
    assert nothing.returncode == PRECONDITION and problem(nothing) == "not_draining"
    told = one.signal_reader()
    told.send(op="register")
    told.wait_answer("register", 2)
    one.step_down(wait=False)
    told.wait_event("lease.draining", 2)
    wrong = leasehold("drained", "app", "--token", "9", "--socket", one.socket_path)
    assert wrong.returncode == NOT_HOLDER, wrong
    right = leasehold("drained", "-c", one.config_path)
    assert right.returncode == OK and right.stdout.startswith("drained"), right
    assert "waiting for 1" in right.stdout, "another's listener is not spoken for"
    told.close()
    one.wait_event("lease.released", 2)
    assert leasehold("drained", "--socket", "/nowhere/s.sock").returncode == UNREACHABLE
    assert leasehold("drained").returncode == USAGE
    assert leasehold("drained", "--token", "x", "--socket", one.socket_path).returncode == USAGE


def test_a_place_where_no_sidecar_answers_is_4(app, things):
    nobody = f"http://127.0.0.1:{free_port()}"
    for command in (["status"], ["describe"], ["step-down", "--yes"]):
        done = leasehold(*command, "--admin", nobody, "--json")
        assert done.returncode == UNREACHABLE and problem(done) == "not_reachable", done
        assert nobody.rpartition("/")[2] in done.stderr, "it names the address"
    stranger = leasehold("status", "--admin", "http://" + app("a").address)
    assert stranger.returncode == UNREACHABLE and "Leasehold API" in stranger.stderr, stranger


@pytest.mark.parametrize("arguments, words", [
    (["rnu"], 'did you mean "run"?'),
    (["fly"], "leasehold --help"),
    ([], "subcommand"),
    (["run", "--port", "1"], "--port"),
    (["status", "--admin", "ftp://x"], "--admin"),
    (["status", "--admin", "http://127.0.0.1:9090/v1"], "--admin"),
    (["step-down", "--timeout", "soon"], "--timeout"),
    (["step-down", "--timeout", "0s"], "--timeout"),
    (["step-down", "--wait", "--no-wait"], "--"),
    (["step-down", "--expected-node-id", "a", "--expected-token", "-1"], "--expected-token"),
    (["step-down", "a", "b"], "b"),
    (["check", "--refrence"], "--refrence"),
    (["version", "now"], "now"),
])
def test_a_wrong_command_line_is_2_with_a_sentence(arguments, words):
    done = leasehold(*arguments)
    assert done.returncode == USAGE, done
    assert words in done.stderr, done.stderr
    assert done.stdout == ""


def test_help_version_and_reference_are_0():
    overview = leasehold("--help")
    assert overview.returncode == OK and overview.stderr == ""
    for word in ("run", "check", "status", "describe", "step-down", "wait", "drained", "version",
                 "Exit codes:", "  6  "):
        assert word in overview.stdout
    for command in ("run", "check", "status", "describe", "step-down", "wait", "drained"):
        done = leasehold(command, "--help")
        assert done.returncode == OK and "leasehold " + command in done.stdout, done.stdout
    version = leasehold("version")
    assert version.returncode == OK
    assert version.stdout.strip() == leasehold("--version").stdout.strip()
    assert json.loads(leasehold("version", "--json").stdout)["version"] in version.stdout
    assert "redis.password_file" in leasehold("check", "--reference").stdout


def test_standard_output_that_is_full_is_not_success(single):
    one = single()
    with open("/dev/full", "w") as full:
        done = subprocess.run([binary(), "status", "--admin", one.admin_url], stdout=full,
                              stderr=subprocess.PIPE, timeout=10, check=False)
    assert done.returncode == FAILED
    at = time.time()
    piped = subprocess.run(f"{binary()} check --reference | head -1", shell=True, timeout=10,
                           capture_output=True, check=False)
    assert piped.stdout and time.time() - at < 5
