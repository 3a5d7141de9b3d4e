"""What the chart renders, run: two pods' sidecars with their own commands, probes and hooks beside a real
Redis and two applications."""

import contextlib
import http.client
import json
import threading

import pytest

from chart import EXAMPLES, render
from harness.app import App
from harness.process import free_port
from harness.redis import Redis
from harness.wait import wait_for
from pod import Pod

MINIMAL = next(path for path in EXAMPLES if path.stem == "minimal")
LINGER = 1
QUICK = 3    # neither a grace (3 s) nor a hold-off was waited for, on a busy machine too
HOLD_OFF = 2    # the least that goes with a ttl of 3 s: poll and call take less


class Cluster:
    """Pods of one release, "a" and "b" by their addresses."""

    def __init__(self, stack, directory, leases=("orders",)):
        self.stack = stack
        self.directory = directory
        self.redis = Redis(directory / "redis")
        stack.callback(self.redis.close)
        self.web, peer, admin = free_port(), free_port(), free_port()
        config = {
            "store": {"type": "redis", "redis": {"url": self.redis.url}},
            "lease": [{"name": name, "ttl": "3s", "step_down_grace": "3s",
                       "step_down_hold_off": f"{HOLD_OFF}s"} for name in leases],
            "gate": [{"name": "web", "type": "http", "lease": leases[0], "listen": f"${{POD_IP}}:{self.web}",
                      "upstream": "127.0.0.1:${APP_PORT}", "standby": "forward",
                      "peer_listen": f"${{POD_IP}}:{peer}", "advertise": f"${{POD_IP}}:{peer}"}],
            "admin": {"listen": f"${{POD_IP}}:{admin}"},
            "app": {"check": "http://127.0.0.1:${APP_PORT}/healthz"},
        }
        self.rendered = render(MINIMAL, sets=(f"config={json.dumps(config)}",
                                              f"shutdown.lingerSeconds={LINGER}"))

    def pod(self, name, ip):
        app = App(name)
        self.stack.callback(app.close)
        pod = Pod(self.rendered, self.directory / name, f"orders-{name}", ip,
                  {"APP_PORT": str(app.port)})
        pod.app = app
        self.stack.callback(pod.close)
        return pod.start()


@pytest.fixture
def cluster(tmp_path):
    with contextlib.ExitStack() as stack:
        yield Cluster(stack, tmp_path)


@pytest.fixture
def pods(cluster):
    """The holder and its standby."""
    holder = cluster.pod("a", "127.0.0.2")
    wait_for(holder.leader, 10, holder.log)
    standby = cluster.pod("b", "127.0.0.3")
    wait_for(lambda: standby.probe("readinessProbe"), 10, standby.log)
    return holder, standby


def test_both_pods_are_ready_and_alive_to_a_kubelet(pods):
    for pod in pods:
        assert pod.probe("livenessProbe") and pod.probe("readinessProbe"), pod.log()
    assert [pod.leader() for pod in pods] == [True, False]


def test_a_standby_whose_application_is_not_there_is_alive_but_not_ready(pods):
    _, standby = pods
    standby.app.healthy = False
    wait_for(lambda: not standby.probe("readinessProbe"), 10, standby.log)
    assert standby.probe("livenessProbe") and standby.probe("startupProbe")


def test_pre_stop_moves_the_lease_and_the_sidecar_then_goes_at_once(pods):
    holder, standby = pods
    before = holder.token()
    code, took, said = holder.pre_stop()
    assert code == 0, said
    assert standby.leader() and not holder.leader()
    assert standby.token() == before + 1
    assert LINGER <= took < LINGER + QUICK, said
    assert holder.terminate(seconds=1) == 0     # CASES: within 1 s after preStop


def test_pre_stop_gives_all_leases_away_side_by_side(tmp_path):
    with contextlib.ExitStack() as stack:
        cluster = Cluster(stack, tmp_path, leases=("orders", "reports", "mail"))
        holder = cluster.pod("a", "127.0.0.2")
        wait_for(holder.leader, 10, holder.log)     # of several leases: holds all
        standby = cluster.pod("b", "127.0.0.3")
        wait_for(lambda: standby.probe("readinessProbe"), 10, standby.log)
        code, took, said = holder.pre_stop()
        assert code == 0, said
        assert standby.leader(), standby.log()
        assert took < LINGER + QUICK, said


def test_pre_stop_of_a_standby_only_lingers(pods):
    holder, standby = pods
    before = holder.token()
    code, took, said = standby.pre_stop()
    assert code == 0, said
    assert LINGER <= took < LINGER + QUICK, said
    assert holder.leader() and holder.token() == before
    assert standby.terminate(seconds=1) == 0


def test_pre_stop_without_a_successor_ends_in_time_and_says_so(cluster):
    alone = cluster.pod("a", "127.0.0.2")
    wait_for(alone.leader, 10, alone.log)
    code, took, said = alone.pre_stop()
    assert code != 0 and "no instance was seen to take it" in said
    assert took < cluster.rendered.grace_period
    assert not alone.leader()
    assert alone.terminate(seconds=1) == 0


def test_pre_stop_during_a_step_down_leaves_it_alone(pods):
    """Somebody moves the lease by hand, and the pod is told to go meanwhile."""
    holder, standby = pods
    holder.app.healthy = False      # it steps down by itself after unready_after
    wait_for(standby.leader, 15, standby.log)
    assert holder.pre_stop()[0] == 0
    assert standby.leader()


def test_a_pod_that_cannot_be_asked_is_told_as_a_failed_hook(pods):
    holder, _ = pods
    holder.terminate(seconds=10)
    code, took, said = holder.pre_stop()
    assert code == 4, said
    assert took < LINGER + QUICK


def test_whichever_pod_a_client_reaches_the_holder_answers(cluster, pods):
    """The Service sends clients to both, also while one of them is told to go."""
    holder, standby = pods

    def answers():
        return [ask(pod, cluster.web) for pod in pods]
    assert answers() == [(200, "a"), (200, "a")]
    assert holder.pre_stop()[0] == 0
    # The pod that goes still runs, kept by its application's preStop: it forwards.
    assert answers() == [(200, "b"), (200, "b")]
    assert holder.terminate(seconds=1) == 0
    assert ask(standby, cluster.web) == (200, "b")


def test_no_request_is_lost_while_a_pod_goes(cluster, pods):
    holder, standby = pods
    stop = threading.Event()
    lost = []
    counts = {pod: 0 for pod in pods}

    def load(pod):
        while not stop.is_set():
            status, who = ask(pod, cluster.web)
            counts[pod] += 1
            if status != 200:
                lost.append((pod.name, status, who))
    threads = [threading.Thread(target=load, args=(pod,)) for pod in pods for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: min(counts.values()) > 20, 10, lambda: f"load: {counts}")
        assert holder.pre_stop()[0] == 0
        after = dict(counts)
        wait_for(lambda: all(counts[pod] > after[pod] + 20 for pod in pods), 10,
                 lambda: f"load after preStop: {counts}")
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)
    assert lost == []
    assert standby.leader()


def ask(pod, port):
    """(status, the application's name), over a connection of its own."""
    connection = http.client.HTTPConnection(pod.ip, port, timeout=15)
    try:
        connection.request("POST", "/", body=b"x" * 100)
        answer = connection.getresponse()
        return answer.status, answer.read().decode().partition(" ")[0]
    except OSError as error:
        return 0, repr(error)
    finally:
        connection.close()
