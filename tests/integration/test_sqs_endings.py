"""What an sqs gate owes to receives when its process goes away, and how much an answer may hold."""

import signal
import time

import pytest

from harness.raw import Raw
from harness.sqs_scene import queue_url, sqs_gate
from harness.sqs_wire import JSON_TARGET
from harness.wait import wait_for

MIB = 1024 * 1024


@pytest.fixture
def service(strict_sqs):
    return strict_sqs()


@pytest.fixture
def gate(sidecar, service, tmp_path):
    """gate(node="s1", **options of the lease) -> a sidecar before the service, started."""
    def make(node="s1", **lease):
        return sidecar(node, tmp_path / "store", gates=[sqs_gate(service)], lease=lease,
                       env=service.environment).start()
    return make


@pytest.fixture
def receive(things, service):
    """receive(sidecar, count=1, wait=20) -> the connection on which that receive is open."""
    def make(one, count=1, wait=20):
        body = ('{"QueueUrl": "%s", "MaxNumberOfMessages": %d, "WaitTimeSeconds": %d}'
                % (queue_url(one, service), count, wait))
        raw = Raw(one.gate("queue"), timeout=20)
        things.callback(raw.close)
        return raw.send(f"POST / HTTP/1.1\r\nHost: sqs\r\nX-Amz-Target: {JSON_TARGET}ReceiveMessage\r\n"
                        f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    return make


def terminate(one):
    one.process.signal(signal.SIGTERM)


def test_a_message_that_comes_to_a_receive_of_a_process_that_ends_is_visible_again(gate, service, receive):
    one = gate(step_down_grace="4s")
    one.wait_active(10)
    polls = [receive(one) for _ in range(3)]
    wait_for(lambda: service.wait_polls(3), 5, "the receives are with the service")
    terminate(one)
    for poll in polls:
        answer = poll.response()
        assert (answer.status, answer.body) == (200, b"{}"), answer
    one.wait_event("lease.released", 5)
    service.send("late")
    wait_for(lambda: not one.running(), 15, "the process ends")
    counts = service.queues["orders"].counts(time.monotonic())
    assert counts["ApproximateNumberOfMessages"] == "1", f"{counts}\n{one.tail()}"
    assert one.process.exit_code() == 0


def test_a_receive_that_waits_at_a_standby_ends_empty_when_the_process_does(gate, receive):
    gate("s1").wait_active(10)
    standby = gate("s2")
    poll = receive(standby)
    wait_for(lambda: standby.metric("leasehold_gate_sqs_polls") == 1, 5, "the receive waits")
    terminate(standby)
    answer = poll.response()
    assert (answer.status, answer.body) == (200, b"{}"), answer
    wait_for(lambda: not standby.running(), 10, "the process ends")


def test_ten_messages_of_a_mebibyte_that_all_need_escapes_are_received_at_once(gate, service, receive):
    one = gate()
    one.wait_active(10)
    service.send(*(str(i) + '"' * (MIB - 1) for i in range(10)))
    answer = receive(one, count=10).response()
    assert answer.status == 200, answer
    assert len(answer.body) > 20 * MIB and answer.body.count(b"ReceiptHandle") == 10


def test_the_log_says_how_many_messages_the_end_of_a_drain_gave_back_not_how_many_of_the_first_ten(
        gate, service, receive):
    one = gate(step_down_grace="1s")
    one.wait_active(10)
    service.send(*(str(i) for i in range(60)))
    for _ in range(6):
        assert receive(one, count=10).response().body.count(b"ReceiptHandle") == 10
    terminate(one)
    wait_for(lambda: not one.running(), 15, "the process ends")
    told = one.events("gate.sqs_given_back", reason="grace_over")
    assert sum(int(line["given_back"]) for line in told) == 60, told
    assert len(told) <= 3, told
