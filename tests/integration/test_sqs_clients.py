"""Unmodified SQS clients behind a gate whose lease is held: every client on every service. The clients
sign with credentials that the service does not know; what arrives bears the sidecar's."""

import functools

import pytest

from harness.sqs_clients import AwsCli, Boto, BotoQuery, NodeSdk
from harness.sqs_scene import gate_url, queue_url, sqs_gate
from harness.wait import wait_for

KIB = 1024
QUEUES = ("orders", "orders.fifo")
CLIENTS = {each.name: each for each in (NodeSdk, Boto, BotoQuery, AwsCli)}
SERVICES = ("local_sqs", "moto", "strict_sqs")


@pytest.fixture(params=SERVICES)
def service(request):
    # moto decodes a form, and hashes what it makes of it when it encodes it anew: that is not what
    # was signed wherever a blank came as %20. The strict one checks forms as they arrived.
    form = request.node.callspec.params.get("client") == "boto3_query"
    options = {"checking": not form} if request.param == "moto" else {}
    return request.getfixturevalue(request.param)(queues=QUEUES, **options)


@pytest.fixture
def one(service, sidecar, tmp_path):
    """A sidecar that holds, before the service, with the service's credentials."""
    made = sidecar("s1", tmp_path / "store", gates=[sqs_gate(service)], env=service.environment).start()
    made.wait_active()
    return made


@pytest.fixture(params=CLIENTS)
def client(request, one, things):
    made = CLIENTS[request.param](gate_url(one))
    things.callback(made.close)
    return made


def receive(client, url, count, **more):
    """`count` messages, in as many calls as it takes."""
    got = []

    def enough():
        answer = client.call("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 1,
                                                **more})
        got.extend(answer.get("Messages", []))
        return len(got) >= count
    wait_for(enough, 15, lambda: f"{count} messages; got {got}")
    return got


def nothing_left(client, url):
    return not client.call("ReceiveMessage", {"QueueUrl": url}).get("Messages")


def test_a_message_goes_there_and_back_and_is_gone_when_deleted(client, one, service):
    url = client.call("GetQueueUrl", {"QueueName": "orders"})["QueueUrl"]
    assert url == queue_url(one, service), "case 29: the SDK would leave the sidecar"
    text = "Grüße, <b>&amp; \"'\n\t\r 𝄞 +%20=;" if service.exact else "Grüße 𝄞 +%20="
    sent = client.call("SendMessage", {
        "QueueUrl": url, "MessageBody": text, "MessageAttributes": {
            "kind": {"DataType": "String", "StringValue": "a+b %26"},
            "size": {"DataType": "Number", "StringValue": "12.5"},
            "raw": {"DataType": "Binary", "BinaryValue": b"\1\2\3"}}})
    [message] = receive(client, url, 1, MessageAttributeNames=["All"], AttributeNames=["All"])
    assert message["Body"] == text
    assert message["MessageId"] == sent["MessageId"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    attributes = message["MessageAttributes"]
    assert attributes["kind"]["StringValue"] == "a+b %26" and attributes["size"]["StringValue"] == "12.5"
    assert attributes["raw"]["BinaryValue"] in (b"\1\2\3", "AQID")   # awscli prints base64
    client.call("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}).get("")
    assert nothing_left(client, url)


def test_batches_and_visibility(client, one, service):
    url = queue_url(one, service)
    bodies = [f"message {i}" for i in range(4)]
    sent = client.call("SendMessageBatch", {"QueueUrl": url, "Entries": [
        {"Id": f"e{i}", "MessageBody": body} for i, body in enumerate(bodies)]})
    assert [each["Id"] for each in sent["Successful"]] == ["e0", "e1", "e2", "e3"] and not sent.get("Failed")
    got = receive(client, url, 4)
    assert sorted(m["Body"] for m in got) == bodies
    assert nothing_left(client, url)
    client.call("ChangeMessageVisibility", {"QueueUrl": url, "ReceiptHandle": got[0]["ReceiptHandle"],
                                            "VisibilityTimeout": 0}).get("")
    back = client.call("ChangeMessageVisibilityBatch", {"QueueUrl": url, "Entries": [
        {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 0}
        for i, m in enumerate(got) if i > 0]})
    assert len(back["Successful"]) == 3
    again = receive(client, url, 4, AttributeNames=["ApproximateReceiveCount"])
    assert sorted(m["Body"] for m in again) == bodies
    assert {m["Attributes"]["ApproximateReceiveCount"] for m in again} == {"2"} or not service.exact
    gone = client.call("DeleteMessageBatch", {"QueueUrl": url, "Entries": [
        {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(again)]})
    assert len(gone["Successful"]) == 4 and not gone.get("Failed")


def test_queues_are_made_described_purged_and_removed(client, one, service):
    url = client.call("CreateQueue", {"QueueName": "more", "Attributes": {"VisibilityTimeout": "44"}})["QueueUrl"]
    assert url == queue_url(one, service, "more")
    urls = client.call("ListQueues", {})["QueueUrls"]
    assert sorted(urls) == sorted(queue_url(one, service, name) for name in (*QUEUES, "more"))
    client.call("SetQueueAttributes", {"QueueUrl": url, "Attributes": {"DelaySeconds": "0"}}).get("")
    client.call("SendMessage", {"QueueUrl": url, "MessageBody": "x"}).get("")
    told = client.call("GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["All"]})["Attributes"]
    assert told["VisibilityTimeout"] == "44" and told["ApproximateNumberOfMessages"] in \
        ("1", "1" if service.exact else "0")
    client.call("PurgeQueue", {"QueueUrl": url}).get("")
    assert nothing_left(client, url) or not service.exact
    client.call("DeleteQueue", {"QueueUrl": url}).get("")


def test_a_queue_that_is_not_there_is_the_exception_that_clients_catch(client):
    answer = client.call("GetQueueUrl", {"QueueName": "none"})
    assert answer.code in ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"), answer
    assert answer.name in ("QueueDoesNotExist", ""), answer   # "": awscli has no classes
    assert answer.attempts == 1


@pytest.mark.parametrize("service", ["strict_sqs"], indirect=True)
@pytest.mark.parametrize("client", ["sdk_js", "boto3", "boto3_query"], indirect=True)
def test_a_fifo_queue_keeps_its_order_and_withholds_a_group_in_flight(client, one, service):
    url = queue_url(one, service, "orders.fifo")
    send = functools.partial(client.call, "SendMessage")
    for group, body in (("a", "a1"), ("a", "a2"), ("b", "b1")):
        sent = send({"QueueUrl": url, "MessageBody": body, "MessageGroupId": group, "MessageDeduplicationId": body})
        assert sent["SequenceNumber"]
    again = send({"QueueUrl": url, "MessageBody": "a1", "MessageGroupId": "a", "MessageDeduplicationId": "a1"})
    assert again["MessageId"]
    [first] = client.call("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 1,
                                             "AttributeNames": ["All"]})["Messages"]
    assert first["Body"] == "a1" and first["Attributes"]["MessageGroupId"] == "a"
    [other] = client.call("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10})["Messages"]
    assert other["Body"] == "b1", "group a has one in flight"
    client.call("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": first["ReceiptHandle"]}).get("")
    [second] = receive(client, url, 1)
    assert second["Body"] == "a2"


@pytest.mark.parametrize("service", ["strict_sqs"], indirect=True)
@pytest.mark.parametrize("size", [256 * KIB, 1024 * KIB])
def test_large_bodies_arrive_whole(client, one, service, size):
    url = queue_url(one, service)
    text = "".join(chr(0x20 + i % 95) for i in range(size))
    client.call("SendMessage", {"QueueUrl": url, "MessageBody": text}).get("")
    [message] = receive(client, url, 1)
    assert message["Body"] == text


@pytest.mark.parametrize("service", ["strict_sqs"], indirect=True)
@pytest.mark.parametrize("client", ["sdk_js", "boto3", "boto3_query"], indirect=True)
def test_a_mib_that_grows_on_the_way_arrives_whole(client, one, service):
    """Quotes and control characters double or sixfold in JSON, everything threefold in a form."""
    url = queue_url(one, service)
    text = '"\n\\' * (1024 * KIB // 3)
    client.call("SendMessage", {"QueueUrl": url, "MessageBody": text}).get("")
    [message] = receive(client, url, 1)
    assert message["Body"] == text


@pytest.mark.parametrize("service", ["strict_sqs"], indirect=True)
def test_case_27_failures_inside_a_200_reach_the_client_entry_by_entry(client, one, service):
    url = queue_url(one, service)
    entries = [{"Id": f"e{i}", "MessageBody": f"m{i}"} for i in range(10)]
    service.fail_entries(2, 5, 9)
    answer = client.call("SendMessageBatch", {"QueueUrl": url, "Entries": entries})
    assert {each["Id"] for each in answer["Failed"]} == {"e2", "e5", "e9"}
    assert all(each["Code"] == "InternalError" and not each["SenderFault"] for each in answer["Failed"])
    assert len(answer["Successful"]) == 7
    failed = {each["Id"] for each in answer["Failed"]}
    client.call("SendMessageBatch", {"QueueUrl": url, "Entries": [e for e in entries if e["Id"] in failed]}).get("")
    assert sorted(m.body for m in service.queues["orders"].messages) == sorted(f"m{i}" for i in range(10))
    sent = service.of("SendMessageBatch")
    assert [len(r.parameters["Entries"]) for r in sent] == [10, 3]


@pytest.mark.parametrize("service", ["local_sqs", "strict_sqs"], indirect=True)
def test_case_29_the_javascript_sdk_with_its_endpoint_from_the_environment_stays_with_the_sidecar(
        one, service, things):
    """It then goes to whatever host a QueueUrl names (a long poll too)."""
    client = NodeSdk(gate_url(one), endpoint_in="environment")
    things.callback(client.close)
    url = client.call("GetQueueUrl", {"QueueName": "orders"})["QueueUrl"]
    client.call("SendMessage", {"QueueUrl": url, "MessageBody": "x"}).get("")
    [message] = receive(client, url, 1)
    client.call("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}).get("")
    served = one.metric("leasehold_gate_requests_total", gate="queue")
    assert served is None or served >= 4
