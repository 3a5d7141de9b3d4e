"""An sqs gate on a standby, in a step-down and after a loss (CASES 26): who receives, what may still be
deleted, what is given back."""

import time

import pytest

from harness.fault_proxy import SWALLOW, is_renewal
from harness.measured import measured
from harness.pair import Pair
from harness.sqs_clients import Boto, BotoQuery, Consumer, NodeSdk, RawSqs
from harness.sqs_scene import gate_url, queue_url, sqs_gate
from harness.wait import wait_for, watch_for

CLIENTS = {each.name: each for each in (NodeSdk, Boto, BotoQuery)}


@pytest.fixture
def service(strict_sqs):
    return strict_sqs()


@pytest.fixture
def pair(sidecar, service, tmp_path):
    """pair(store=..., gate={...}, lease={...}) -> Pair of sidecars before the service, started."""
    def make(stores=None, gate=None, lease=None):
        stores = stores or (tmp_path / "store",) * 2
        return Pair(*(sidecar(f"s{i + 1}", store, gates=[sqs_gate(service, **(gate or {}))], lease=lease,
                              env=service.environment) for i, store in enumerate(stores)), ()).start()
    return make


@pytest.fixture
def client(request, things):
    """client(sidecar, kind=NodeSdk) -> a client behind that sidecar."""
    def make(one, kind=NodeSdk):
        made = kind(gate_url(one))
        things.callback(made.close)
        return made
    return make


@pytest.fixture
def consumer(things, tmp_path, service):
    """consumer(sidecar, handle_ms=0, **options of sqs-consumer) -> Consumer behind that sidecar."""
    def make(one, **options):
        made = Consumer(tmp_path, one.node, queue_url(one, service), **options)
        things.callback(made.close)
        return made
    return make


def receive_one(client, url, seconds=5, **more):
    def got():
        return client.call("ReceiveMessage", {"QueueUrl": url, "AttributeNames": ["ApproximateReceiveCount"],
                                              **more}).get("Messages")
    return wait_for(got, seconds, "a message")[0]


# ---- standing by ----

@pytest.mark.parametrize("kind", CLIENTS.values(), ids=CLIENTS)
def test_a_standby_is_an_empty_queue_that_takes_nothing_and_asks_the_service_nothing(
        pair, service, client, kind):
    both = pair()
    service.send("for the holder")
    other = client(both.second, kind)
    url = other.call("GetQueueUrl", {"QueueName": "orders"})["QueueUrl"]
    assert url == queue_url(both.second, service)
    asked = time.monotonic()
    assert not other.call("ReceiveMessage", {"QueueUrl": url, "WaitTimeSeconds": 1}).get("Messages")
    assert 0.95 < time.monotonic() - asked < 3, "as long as the service would have waited"
    asked = time.monotonic()
    assert not other.call("ReceiveMessage", {"QueueUrl": url, "WaitTimeSeconds": 0}).get("Messages")
    assert time.monotonic() - asked < 1
    refused = other.call("SendMessage", {"QueueUrl": url, "MessageBody": "x"})
    assert refused.code and refused.attempts > 1, f"its SDK tries again: {refused}"
    assert refused.status >= 500, refused
    assert not service.of("ReceiveMessage") and not service.of("SendMessage")


@pytest.mark.parametrize("operation, parameters", [
    ("DeleteMessage", {"ReceiptHandle": "orders#x#y"}), ("PurgeQueue", {}), ("DeleteQueue", {}),
    ("ChangeMessageVisibility", {"ReceiptHandle": "orders#x#y", "VisibilityTimeout": 5}),
    ("SetQueueAttributes", {"Attributes": {"DelaySeconds": "1"}}),
    ("SendMessageBatch", {"Entries": [{"Id": "a", "MessageBody": "x"}]}),
    ("DeleteMessageBatch", {"Entries": [{"Id": "a", "ReceiptHandle": "orders#x#y"}]})])
def test_a_standby_lets_nothing_through_that_changes_a_queue(pair, service, operation, parameters):
    both = pair()
    raw = RawSqs(both.second.gate("queue"), is_json=True)
    answer = raw.call(operation, {"QueueUrl": queue_url(both.second, service), **parameters})
    assert answer.code and answer.status >= 400, answer
    assert not service.of(operation)


def test_a_standby_that_may_send_sends_and_receives_nothing_all_the_same(pair, service, client):
    both = pair(gate={"standby_send": "pass"})
    other = client(both.second)
    url = queue_url(both.second, service)
    other.call("SendMessage", {"QueueUrl": url, "MessageBody": "from the standby"}).get("")
    batch = other.call("SendMessageBatch", {"QueueUrl": url, "Entries": [{"Id": "a", "MessageBody": "x"}]})
    assert len(batch["Successful"]) == 1
    assert not other.call("ReceiveMessage", {"QueueUrl": url}).get("Messages")
    assert not service.of("ReceiveMessage")
    assert receive_one(client(both.first), queue_url(both.first, service))["Body"] == "from the standby"


# ---- stepping down ----

def test_a_message_that_comes_while_an_open_poll_steps_down_is_the_other_sides_within_two_seconds(
        pair, service, consumer):
    both = pair(lease={"ttl": "2s", "step_down_grace": "2s"})
    first, second = (consumer(s, waitTimeSeconds=20) for s in (both.first, both.second))
    service.send("warm")
    assert first.wait_done("warm", 5)
    wait_for(lambda: service.wait_polls(1), 5, "the holder's poll is open at the service")
    asked = time.time()
    assert both.first.step_down(wait=False).status == 202
    wait_for(lambda: time.time() >= asked + 0.1, 1, "100 ms")
    service.send("late")
    sent = time.time()
    done = second.wait_done("late", 2, since=asked)
    assert not [e for e in first.events("done") if e["body"] == "late"], "processed by the former holder"
    assert done["receives"] <= 2, "the receive count was raised needlessly"
    assert not first.events("error"), "the former holder's consumer has seen an empty queue, no more"
    measured(f"sqs: message sent 100 ms into a step-down with a 20 s poll open: processed on the other side "
             f"{done['at'] - sent:.3f} s later, ApproximateReceiveCount {done['receives']}")


def test_what_is_in_flight_may_be_deleted_in_the_drain_and_the_rest_is_given_back_at_its_end(
        pair, service, client):
    both = pair(lease={"step_down_grace": "1500ms"})
    mine, others = client(both.first), client(both.second)
    url = queue_url(both.first, service)
    service.send("done in time", "not done")
    done, rest = (receive_one(mine, url) for _ in range(2))
    assert (done["Body"], rest["Body"]) == ("done in time", "not done")
    assert both.first.step_down(wait=False).status == 202
    both.first.wait_event("lease.draining", 2)
    mine.call("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": done["ReceiptHandle"]}).get("")
    released = both.first.wait_event("lease.released", 3).at
    again = receive_one(others, queue_url(both.second, service), WaitTimeSeconds=2)
    assert again["Body"] == "not done" and again["Attributes"]["ApproximateReceiveCount"] == "2"
    [given] = [r for name in ("ChangeMessageVisibility", "ChangeMessageVisibilityBatch") for r in service.of(name)]
    assert given.at <= released + 0.001 and given.status == 200
    assert [m.body for m in service.queues["orders"].deleted.values()] == ["done in time"]
    refused = mine.call("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": rest["ReceiptHandle"]})
    assert not refused.ok
    assert len(service.of("DeleteMessage")) == 1


def test_a_drain_ends_as_soon_as_nothing_is_in_flight(pair, service, client):
    both = pair(lease={"step_down_grace": "10s"})
    mine = client(both.first)
    url = queue_url(both.first, service)
    service.send("x")
    message = receive_one(mine, url)
    asked = time.time()
    assert both.first.step_down(wait=False).status == 202
    watch_for(lambda: not both.first.events("lease.released"), 0.3, "released with a message in flight")
    mine.call("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}).get("")
    released = both.first.wait_event("lease.released", 2, since=asked)
    assert released.at - asked < 1.5


# ---- losing ----

def test_case_26_a_former_holders_delete_is_refused_and_the_message_is_received_again(
        redis_server, fault_proxy, pair, service, client):
    store = redis_server()
    proxy = fault_proxy(store)
    both = pair((proxy, store), lease={"ttl": "2s"})
    mine, others = client(both.first), client(both.second)
    url = queue_url(both.first, service)
    service.send("once")
    message = receive_one(mine, url, VisibilityTimeout=4)
    cut = proxy.on(is_renewal, SWALLOW, before=proxy.black_hole)
    wait_for(lambda: cut.hits, 3, "cut off from the store")
    lost = both.first.wait_event("lease.lost", 5)
    both.second.wait_active(5)
    refused = mine.call("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]})
    assert not refused.ok, "a former holder's delete was let through"
    assert not service.of("DeleteMessage")
    again = receive_one(others, queue_url(both.second, service), 8, WaitTimeSeconds=5)
    assert again["Body"] == "once" and again["Attributes"]["ApproximateReceiveCount"] == "2"
    others.call("DeleteMessage", {"QueueUrl": queue_url(both.second, service),
                                  "ReceiptHandle": again["ReceiptHandle"]}).get("")
    given = [r for name in ("ChangeMessageVisibility", "ChangeMessageVisibilityBatch")
             for r in service.of(name, since=lost.at)]
    assert not given, "after a loss nothing is given back that the application has seen"


def test_after_a_loss_an_open_poll_ends_empty_and_what_it_still_gets_is_given_back(
        redis_server, pair, service, consumer):
    store = redis_server()
    both = pair((store, store))
    first = consumer(both.first, waitTimeSeconds=20)
    wait_for(lambda: service.wait_polls(1), 5, "the holder's poll is open at the service")
    both.second.stop()
    store.write_record(token=9, node_id="intruder", process_id="f" * 32, beat=1, state="held")
    lost = both.first.wait_event("lease.lost", 3)
    wait_for(lambda: first.events("empty", lost.at) or first.events("error", lost.at), 2, "the poll has ended")
    service.send("swallowed")
    back = wait_for(lambda: [r for name in ("ChangeMessageVisibility", "ChangeMessageVisibilityBatch")
                             for r in service.of(name, lost.at)], 5, "given back")
    assert back[0].parameters.get("VisibilityTimeout", 0) == 0
    assert not first.events("began"), "a message reached the consumer of a former holder"


# ---- what passes through ----

@pytest.mark.parametrize("kind", CLIENTS.values(), ids=CLIENTS)
def test_throttling_and_server_errors_are_the_sdks_to_retry(pair, service, client, kind):
    both = pair()
    mine = client(both.first, kind)
    url = queue_url(both.first, service)
    for trouble in (("RequestThrottled", "Request is throttled.", 403), ("ServiceUnavailable", "later", 503)):
        fault = service.fault("SendMessage", *trouble)
        before = len(service.of("SendMessage"))
        sent = mine.call("SendMessage", {"QueueUrl": url, "MessageBody": "x"})
        assert sent.ok and sent.attempts == 2 and fault.hits == 1, sent
        assert len(service.of("SendMessage")) == before + 2, "retried by the SDK, once, and by nobody else"
