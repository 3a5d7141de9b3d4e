"""What goes wrong behind an sqs gate is told in the client's own protocol, as the service would."""

import threading
import time

import pytest

from harness import aws_request
from harness.process import free_port
from harness.sqs_clients import Boto, BotoQuery, NodeSdk, RawSqs, read
from harness.sqs_scene import gate_url, queue_url, sqs_gate
from harness.wait import wait_for

MIB = 1024 * 1024
CLIENTS = {each.name: each for each in (NodeSdk, Boto, BotoQuery)}
# Attempts cost back-off, which is not what is looked at here.
ONE_ATTEMPT = {"AWS_MAX_ATTEMPTS": "1"}


@pytest.fixture
def before(sidecar, tmp_path):
    """before(service, secret=...) -> a sidecar that holds."""
    def make(service, secret=None, **gate):
        environment = dict(service.environment)
        if secret is not None:
            environment["AWS_SECRET_ACCESS_KEY"] = secret
        one = sidecar("s1", tmp_path / "store", gates=[sqs_gate(service, **gate)], env=environment).start()
        one.wait_active()
        return one
    return make


@pytest.fixture(params=CLIENTS)
def client(request, things):
    def make(one):
        made = CLIENTS[request.param](gate_url(one), env=ONE_ATTEMPT)
        things.callback(made.close)
        return made
    return make


class Nobody:
    """A service whose port nobody listens on."""

    environment = aws_request.ENVIRONMENT

    def __init__(self):
        self.url = f"http://127.0.0.1:{free_port()}"

    def queue_url(self, name="orders"):
        return f"{self.url}/000000000000/{name}"


def test_a_wrong_secret_of_the_sidecars_is_an_error_with_the_services_own_code(moto, before, client):
    service = moto(checking=True)
    one = before(service, secret="not-the-secret-of-this-key")
    answer = client(one).call("GetQueueUrl", {"QueueName": "orders"})
    assert answer.status == 403, answer
    assert answer.code in ("SignatureDoesNotMatch", "InvalidSignatureException"), answer
    assert "not-the-secret" not in answer.message and "not-the-secret" not in one.tail(1000)


def test_a_key_that_the_service_does_not_know_is_told_too(strict_sqs, before, client):
    service = strict_sqs()
    one = before(service)
    service.credentials = {"AKIDOTHER": "x"}
    answer = client(one).call("ListQueues", {})
    assert answer.status == 403 and answer.code in ("UnrecognizedClientException", "InvalidClientTokenId"), answer


def test_a_credentials_file_that_is_replaced_heals_the_gate_without_a_restart(strict_sqs, sidecar, tmp_path):
    service = strict_sqs(credentials={"AKIDNEW": "its-secret"})
    files = tmp_path / "credentials"
    aws_request.write_credentials(files, "AKIDOLD", "its-secret")
    one = sidecar("s1", tmp_path / "store", gates=[sqs_gate(service)],
                  env=aws_request.with_credentials_file(files)).start()
    one.wait_active()
    raw = RawSqs(one.gate("queue"), is_json=True)
    assert raw.call("ListQueues").status == 403
    aws_request.write_credentials(files, "AKIDNEW", "its-secret")
    wait_for(lambda: raw.call("ListQueues").ok, 3, "the new key is used")
    assert len([r for r in service.requests if r.status == 403]) >= 1


def test_an_endpoint_that_cannot_be_reached_is_an_error_that_names_it(before, client):
    nobody = Nobody()
    one = before(nobody)
    answer = client(one).call("SendMessage", {"QueueUrl": queue_url(one, nobody), "MessageBody": "x"})
    assert answer.status in (502, 503, 504), answer
    assert nobody.url.rpartition("/")[2] in answer.message, answer
    assert answer.code and one.running() and one.holding()


def test_a_body_of_two_mib_is_refused_by_the_service_and_its_words_arrive(strict_sqs, before, client):
    service = strict_sqs()
    one = before(service)
    answer = client(one).call("SendMessage", {"QueueUrl": queue_url(one, service), "MessageBody": "x" * 2 * MIB})
    assert answer.status == 400 and answer.code == "InvalidParameterValue", answer
    assert "1048576" in answer.message


def test_a_body_beyond_the_gates_limit_is_refused_by_the_gate_in_the_clients_protocol(strict_sqs, before, client):
    service = strict_sqs()
    one = before(service, body_bytes_max="1MiB")
    answer = client(one).call("SendMessage", {"QueueUrl": queue_url(one, service), "MessageBody": "x" * 2 * MIB})
    assert 400 <= answer.status < 500 and answer.code, answer
    assert not service.of("SendMessage")


@pytest.mark.parametrize("is_json", [True, False], ids=["json", "query"])
@pytest.mark.parametrize("operation", ["StartFlying", ""])
def test_an_action_that_nobody_knows_is_an_error_in_the_protocol_of_its_request(
        strict_sqs, before, is_json, operation):
    service = strict_sqs()
    one = before(service)
    raw = RawSqs(one.gate("queue"), is_json)
    answer = raw.send(operation)
    said = read(answer, is_json)
    assert 400 <= said.status < 500 and said.code and said.message, said
    assert ("json" if is_json else "xml") in answer.headers["Content-Type"]


@pytest.mark.parametrize("is_json", [True, False], ids=["json", "query"])
def test_a_standbys_refusal_and_an_unreachable_service_are_told_in_the_protocol_of_the_request(
        strict_sqs, sidecar, tmp_path, before, is_json):
    service = strict_sqs()
    before(service)
    other = sidecar("s2", tmp_path / "store", gates=[sqs_gate(service)], env=service.environment).start()
    answer = RawSqs(other.gate("queue"), is_json).send("SendMessage", {
        "QueueUrl": queue_url(other, service), "MessageBody": "x"})
    said = read(answer, is_json)
    assert said.status >= 500 and said.code and "app" in said.message, said
    assert ("json" if is_json else "xml") in answer.headers["Content-Type"]


def test_characters_that_sqs_refuses_are_refused_with_its_words(strict_sqs, before, client):
    service = strict_sqs()
    one = before(service)
    answer = client(one).call("SendMessage", {"QueueUrl": queue_url(one, service), "MessageBody": "bell \7"})
    assert answer.code == "InvalidMessageContents", answer
    assert "#x9" in answer.message


def test_a_stale_handle_is_refused_with_the_services_words(strict_sqs, before, client):
    service = strict_sqs()
    one = before(service)
    mine, url = client(one), queue_url(one, service)
    service.send("x")
    [message] = mine.call("ReceiveMessage", {"QueueUrl": url, "VisibilityTimeout": 0})["Messages"]
    answer = mine.call("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]})
    assert answer.code == "InvalidParameterValue" and "expired" in answer.message, answer


def test_a_slow_service_costs_its_caller_time_and_nobody_else(strict_sqs, before, things):
    service = strict_sqs(queues=("orders", "slow"))
    one = before(service)
    slow, quick = (NodeSdk(gate_url(one)) for _ in range(2))
    for each in (slow, quick):
        things.callback(each.close)
    quick.call("ListQueues", {}).get("")
    service.fault("GetQueueAttributes", None, delay=2.0)
    asked = RawSqs(one.gate("queue"), is_json=True)
    begin = time.monotonic()
    waiting = threading.Thread(target=asked.call, args=("GetQueueAttributes", {
        "QueueUrl": queue_url(one, service, "slow")}))
    waiting.start()
    for _ in range(20):
        quick.call("SendMessage", {"QueueUrl": queue_url(one, service), "MessageBody": "x"}).get("")
    assert time.monotonic() - begin < 1.5 and waiting.is_alive()
    waiting.join(5)
