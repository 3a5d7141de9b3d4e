"""What is DynamoDB's own: signatures, credentials that expire (CASES 7), a clock that is off (CASES 3,
AWS half), tables that are not there, and what it costs. The scenarios of every store run on it too
(fixture store_server)."""

import re
import time

import pytest

from harness import aws_request
from harness.client import get
from harness.dynamo_wire import TABLE
from harness.fault_proxy import ANSWER
from harness.http_messages import answer
from harness.measured import measured
from harness.pair import Pair, http_gate
from harness.wait import wait_for, watch_for

TTL = 2.0
ALWAYS = 10 ** 9


def on_moto(service, **more):
    return {"type": "dynamodb", "dynamodb.endpoint": service.url, "dynamodb.region": aws_request.REGION,
            "dynamodb.table": TABLE, **more}


def no_secret(one, *secrets):
    told = [one.log_path.read_text(), one.admin("/v1/config").body.decode(), one.admin("/metrics").body.decode(),
            one.admin("/v1/status").body.decode()]
    assert not [s for s in secrets for text in told if s in text], "a secret was told"


# ---- signed for a service that checks ----

def test_two_sidecars_with_create_table_hold_and_move_a_lease_at_a_service_that_checks_signatures(
        moto, sidecar, app):
    service = moto(queues=(), checking=True)
    apps = (app("a"), app("b"))
    both = Pair(*(sidecar(f"s{i + 1}", on_moto(service, **{"dynamodb.create_table": True}),
                          gates=[http_gate(apps[i])], env=service.environment) for i in range(2)), apps).start(30)
    assert get(both.first.gate()).body == b"a 1"
    assert both.first.step_down().json()["outcome"] == "taken_over_by_another_process"
    assert get(both.second.gate()).body == b"b 2"
    for one in (both.first, both.second):
        no_secret(one, service.secret)


@pytest.mark.parametrize("key, secret, word", [
    ("known", "not-the-secret-of-this-key", "secret"), ("AKIDUNKNOWN", "known", "key")])
def test_credentials_that_the_service_refuses_are_told_in_a_sentence_and_nothing_is_held(
        moto, sidecar, key, secret, word):
    service = moto(queues=(), checking=True)
    environment = aws_request.environment(service.key if key == "known" else key,
                                          service.secret if secret == "known" else secret)
    one = sidecar("s1", on_moto(service), env=environment).start(ready=False)
    degraded = one.wait_event("store.degraded", 10)
    assert TABLE in degraded["msg"] and word in degraded["msg"].lower(), degraded["msg"]
    watch_for(lambda: not one.events("lease.acquired"), 1, one.tail)
    assert one.running() and one.admin("/readyz").status == 503
    no_secret(one, environment["AWS_SECRET_ACCESS_KEY"])
    assert one.stop() == 0


def test_no_credentials_anywhere_is_told_with_where_they_were_looked_for(dynalite, sidecar):
    store = dynalite()
    one = sidecar("s1", store.store_options(),
                  env=aws_request.with_credentials_file("/dev/null")).start(ready=False)
    told = one.wait_event("store.degraded", 10)["msg"]
    assert "AWS_ACCESS_KEY_ID" in told or "environment" in told, told
    assert not one.events("lease.acquired")


def test_a_table_that_is_not_there_at_start_is_a_refusal_that_says_how_to_make_it(dynalite, sidecar):
    store = dynalite()
    assert store.call("DeleteTable", {"TableName": TABLE}).status == 200
    one = sidecar("s1", store).start(ready=False)
    assert one.process.wait(10) == 2
    refused = one.last("store.refused")["msg"]
    assert TABLE in refused and "pk (string)" in refused and "create_table" in refused, refused


def test_a_table_that_vanishes_costs_the_lease_and_is_taken_into_use_again_when_it_is_made(
        dynalite, sidecar, app):
    store = dynalite()
    one = sidecar("s1", store, gates=[http_gate(app("a"))]).start()
    one.wait_active()
    assert store.call("DeleteTable", {"TableName": TABLE}).status == 200
    assert TABLE in one.wait_event("store.degraded", 3)["msg"]
    one.wait_event("lease.lost", 2 * TTL)
    assert get(one.gate()).status == 503
    store.create_table()
    made = time.time()
    one.wait_active(3 * TTL, since=made)
    assert one.token() == 2 and get(one.gate()).body == b"a 2"


# ---- case 3: a wall clock that is off ----

@pytest.mark.parametrize("offset", [20 * 60, -20 * 60])
def test_case_3_a_clock_20_minutes_off_is_corrected_from_the_services_date(
        dynalite, fault_proxy, sidecar, app, moved, offset):
    store = dynalite()
    proxy = fault_proxy(store)
    refused = proxy.on(is_signed_for_another_time, ANSWER, times=ALWAYS, reply=answer(
        400, {"__type": "com.amazon.coral.service#InvalidSignatureException",
              "message": "Signature expired: 20261201T000000Z is now earlier than 20261201T001500Z "
                         "(20261201T002000Z - 5 min.)" if offset < 0 else
              "Signature not yet current: 20261201T002000Z is still later than 20261201T000500Z "
              "(20261201T000000Z + 5 min.)"}, [("Date", http_date(time.time()))]))
    one = sidecar("s1", proxy, gates=[http_gate(app("a"))], env=moved("s1", offset)[0]).start()
    one.wait_active()
    wait_for(lambda: len(proxy.writes()) >= 4, 5, "renewals")
    assert 1 <= refused.hits <= 2, f"{refused.hits} calls were signed for another time"
    assert get(one.gate()).body == b"a 1"
    assert one.token() == 1 and not one.events("lease.at_risk")


def http_date(instant):
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(instant))


def is_signed_for_another_time(command):
    stamp = command.message.headers.get("x-amz-date", "")
    signed = time.mktime(time.strptime(stamp, "%Y%m%dT%H%M%SZ")) - time.timezone
    return abs(signed - time.time()) > 300


# ---- case 7: credentials that expire ----

def test_case_7_expired_credentials_close_the_gate_at_expiry_and_a_new_file_heals_it(
        dynalite, fault_proxy, sidecar, app, tmp_path, client):
    store = dynalite()
    proxy = fault_proxy(store)
    files = tmp_path / "credentials"
    aws_request.write_credentials(files, "AKIDOLD", "the-secret-of-it")
    one = sidecar("s1", proxy.store_options(), gates=[http_gate(app("a"))],
                  env=aws_request.with_credentials_file(files)).start()
    one.wait_active()
    pid = one.pid
    requests = client(one.gate(), rate=100)
    wait_for(lambda: len(proxy.writes()) >= 2 and requests.oks(), 5, "renewals and requests")
    proxy.on(lambda c: "AKIDOLD" in c.message.headers.get("authorization", ""), ANSWER, times=ALWAYS,
             reply=answer(400, {"__type": "com.amazon.coral.service#ExpiredTokenException",
                                "message": "The security token included in the request is expired"}))
    expired = time.time()
    lost = one.wait_event("lease.lost", 2 * TTL, since=expired)
    last_confirmed = [w for w in proxy.writes() if w.fault is None][-1].at
    assert lost.at - last_confirmed <= TTL
    assert max(r.sent for r in requests.oks()) <= last_confirmed + TTL
    at_risk = one.wait_event("lease.at_risk", 1, since=expired)
    degraded = one.wait_event("store.degraded", 2, since=expired)
    assert "ExpiredToken" in at_risk.get("msg", "") + degraded["msg"], (at_risk, degraded)
    refused = sum(value for name, value in one.metrics().items()
                  if name.startswith("leasehold_store_operations_total") and 'result="refused"' in name)
    assert refused >= 1
    watch_for(lambda: not one.holding() and get(one.gate()).status == 503, 0.5, one.tail)

    aws_request.write_credentials(files, "AKIDNEW", "the-secret-of-it")
    healed = time.time()
    again = one.wait_active(TTL + 1, since=healed)
    assert again.at - healed < TTL, f"{again.at - healed:.3f} s after the file was replaced"
    assert one.pid == pid and one.token() == 2
    wait_for(lambda: get(one.gate()).body == b"a 2", 2, "it serves again")
    no_secret(one, "the-secret-of-it")
    measured(f"case 7: lost {lost.at - last_confirmed:.3f} s after the last confirmed write (ttl {TTL} s), held again "
             f"{again.at - healed:.3f} s after the credentials file was replaced")


# ---- throttling ----

def test_a_throttled_table_demotes_nobody_while_a_renewal_gets_through_now_and_then(
        dynalite, fault_proxy, sidecar, app, client):
    store = dynalite()
    proxy = fault_proxy(store)
    one = sidecar("s1", proxy, gates=[http_gate(app("a"))], lease={"ttl": "3s"}).start()
    one.wait_active()
    requests = client(one.gate(), rate=50)
    count = iter(range(ALWAYS))
    # Two of three.
    throttled = proxy.on(lambda c: c.is_write and next(count) % 3 < 2, ANSWER, times=ALWAYS, reply=answer(
        400, {"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
              "message": "The level of configured provisioned throughput for the table was exceeded."}))
    wait_for(lambda: throttled.hits >= 8, 12, "eight throttled writes")
    requests.close()
    assert requests.bad() == [] and one.token() == 1
    assert not one.events("lease.lost") and not one.events("lease.draining")


# ---- what it costs ----

def test_a_steady_holder_costs_one_update_a_renewal_and_a_standby_one_read_a_poll(
        dynalite, fault_proxy, sidecar, app):
    store = dynalite()
    proxies = [fault_proxy(store) for _ in range(2)]  # tell the two apart
    apps = (app("a"), app("b"))
    both = Pair(*(sidecar(f"s{i + 1}", proxies[i], gates=[http_gate(apps[i])], lease={"ttl": "4s"})
                  for i in range(2)), apps).start()
    timing = both.second.status()["timing"]
    begin = time.time()
    wait_for(lambda: len(proxies[0].writes(begin)) >= 8, 12, "eight renewals")
    seconds = time.time() - begin

    def calls(proxy):
        return [l for l in list(proxy.log) if l.at >= begin]
    renewals, reads = len(calls(proxies[0])), len(calls(proxies[1]))
    assert all(l.command.is_write for l in calls(proxies[0])), "the holder does nothing but renew"
    assert all(l.command.is_read for l in calls(proxies[1])), "the standby does nothing but read"
    assert renewals <= seconds / (timing["renew_interval_ms"] / 1000) + 1
    assert reads <= seconds / (timing["poll_interval_ms"] / 1000) + 1
    bodies = [l.command.message.body for l in calls(proxies[0])]
    assert max(map(len, bodies)) < 4096
    item = store.item()
    size = sum(len(k) + len(re.sub(r"[{}\" :]", "", str(v))) for k, v in item.items())
    assert size < 1024, f"an item of {size} bytes costs more than one write unit"
    measured(f"dynamodb cost in {seconds:.1f} s at ttl 4 s: holder {renewals} UpdateItem, standby {reads} GetItem "
             f"(poll_interval {timing['poll_interval_ms']} ms), item {size} bytes")


def test_connections_are_kept_alive(dynalite, fault_proxy, sidecar):
    proxy = fault_proxy(dynalite())
    one = sidecar("s1", proxy).start()
    one.wait_active()
    wait_for(lambda: len(proxy.writes()) >= 6, 8, "renewals")
    assert proxy.accepted <= 2, f"{proxy.accepted} connections for {len(proxy.log)} calls"
