"""What an sqs gate sends is signed by the sidecar, for the service's own time, and bears nothing that a
client signed with (CASES 3, AWS half; 32). The strict service recomputes every signature."""

import http.client

import pytest

from harness import aws_request
from harness.sqs_clients import NodeSdk, RawSqs
from harness.sqs_scene import gate_url, queue_url, sqs_gate

SKEW = 20 * 60


@pytest.fixture
def service(strict_sqs):
    return strict_sqs()


@pytest.fixture
def one(sidecar, service, tmp_path):
    made = sidecar("s1", tmp_path / "store", gates=[sqs_gate(service)], env=service.environment).start()
    made.wait_active()
    return made


@pytest.mark.parametrize("offset", [SKEW, -SKEW])
def test_case_3_of_a_clock_20_minutes_off_the_first_call_is_refused_and_the_next_is_right(
        service, sidecar, tmp_path, moved, offset):
    one = sidecar("s1", tmp_path / "store", gates=[sqs_gate(service)],
                  env={**service.environment, **moved("s1", offset)[0]}).start()
    one.wait_active()
    raw = RawSqs(one.gate("queue"), is_json=True)
    answers = [raw.call("GetQueueUrl", {"QueueName": "orders"}) for _ in range(3)]
    assert [a.ok for a in answers] == [False, True, True], answers
    # What the SDKs know to be a matter of the clock, and try again.
    assert answers[0].code in ("InvalidSignatureException", "SignatureDoesNotMatch", "RequestExpired"), answers[0]
    assert len([r for r in service.requests if r.status == 403]) == 1


def test_case_3_a_services_clock_that_moves_is_followed(service, one):
    raw = RawSqs(one.gate("queue"), is_json=False)
    assert raw.call("ListQueues").ok
    service.skew = SKEW
    assert [raw.call("ListQueues").ok for _ in range(2)] == [False, True]
    service.skew = 0.0
    assert [raw.call("ListQueues").ok for _ in range(2)] == [False, True]


def ask(one, method="POST", target="/", headers=(), body=b"{}", chunked=False):
    connection = http.client.HTTPConnection(*one.gate("queue"), timeout=10)
    try:
        connection.request(method, target, iter([body[:1], body[1:]]) if chunked else body, dict(headers),
                           encode_chunked=chunked)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


JSON = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
LIST = b"Action=ListQueues&Version=2012-11-05"


@pytest.mark.parametrize("what", ["signed_by_the_client", "hop_headers", "unknown_amz_headers", "chunked", "another_path",
                                  "form_with_a_query", "a_charset"])
def test_case_32_whatever_the_client_sends_arrives_with_a_signature_that_recomputes(service, one, what):
    host = "%s:%d" % one.gate("queue")
    own = aws_request.signed_headers("sqs", "POST", host, "/", JSON, b"{}", key="AKIDAPPLICATION", secret="x")
    requests = {
        "signed_by_the_client": {"headers": {**own, "X-Amz-Security-Token": "the client's",
                                             "X-Amz-Content-Sha256": "0" * 64}},
        "hop_headers": {"headers": {**JSON, "Connection": "keep-alive, X-Hop", "X-Hop": "1", "TE": "trailers",
                                    "X-Forwarded-For": "10.0.0.1", "Via": "1.1 other", "Expect": "100-continue"}},
        "unknown_amz_headers": {"headers": {**JSON, "X-Amz-Meta-Foo": "bar", "X-Amz-User-Agent": "x",
                                            "Amz-Sdk-Request": "attempt=1; max=3", "Amz-Sdk-Invocation-Id": "1"}},
        "chunked": {"headers": {**JSON, "Transfer-Encoding": "chunked"}, "chunked": True},
        "another_path": {"headers": FORM, "body": b"Action=GetQueueAttributes&AttributeName.1=All",
                         "target": "/000000000000/orders"},
        "form_with_a_query": {"headers": FORM, "body": LIST, "target": "/?x=%2F+y&a"},
        "a_charset": {"headers": {"Content-Type": FORM["Content-Type"] + "; charset=utf-8"}, "body": LIST},
    }[what]
    status, body = ask(one, **requests)
    assert status == 200, body
    [arrived] = service.requests
    names = [name.lower() for name, _ in arrived.headers]
    for name in ("authorization", "host", "x-amz-date"):
        assert names.count(name) == 1, arrived.headers
    assert aws_request.KEY in arrived.header("Authorization")
    for name in ("x-amz-security-token", "x-hop", "x-forwarded-for", "transfer-encoding", "te", "expect"):
        assert name not in names, arrived.headers
    assert "AKIDAPPLICATION" not in str(arrived.headers)
    assert arrived.header("Host") == f"127.0.0.1:{service.port}"


def test_case_32_one_connection_of_an_sdk_serves_many_requests_each_signed_anew(service, one, things):
    client = NodeSdk(gate_url(one))
    things.callback(client.close)
    url = queue_url(one, service)
    for i in range(50):
        client.call("SendMessage", {"QueueUrl": url, "MessageBody": f"message {i}"}).get("")
    assert [m.body for m in service.queues["orders"].messages] == [f"message {i}" for i in range(50)]
    assert service.accepted <= 4, f"{service.accepted} connections to the service for 50 requests"
