"""/v1/openapi.json beside the program it describes: a right document, and a true one."""

import copy
import json
import pathlib
import re

import pytest

from harness.events import EventReader
from harness.openapi import Document
from harness.pair import Pair, http_gate
from harness.raw import Raw

TOKEN = "t0k3n"
STEP_DOWN = "/v1/leases/{name}/step-down"
SOURCE = pathlib.Path(__file__).parents[2] / "src" / "admin" / "openapi.json"


def document_of(one):
    return Document(one.admin("/v1/openapi.json").json())


def judge_reads(document, one, lease="app"):
    """Every documented GET, asked, is answered as documented. {path: status}."""
    statuses = {}
    for method, path in sorted(document.operations()):
        if method != "GET":
            continue
        query = "?follow=false&since=start" if path == "/v1/events" else ""
        answer = one.admin(path.replace("{name}", lease) + query)
        assert document.judge(method, path, answer) == []
        statuses[path] = answer.status
        head = one.admin(path.replace("{name}", lease) + query, "HEAD")
        assert head.body == b"" and head.status == answer.status, path
        assert head.headers["Content-Type"] == answer.headers["Content-Type"], path
    return statuses


@pytest.fixture
def one(tmp_path, sidecar, app):
    started = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"))]).start()
    started.wait_active()
    return started


def test_the_document_keeps_the_rules_of_openapi_and_bears_the_programs_version(one):
    document = document_of(one)
    assert document.check() == []
    assert document.data["info"]["version"] == one.admin("/v1/status").json()["node"]["version"]
    source = json.loads(SOURCE.read_text())
    source["info"]["version"] = document.data["info"]["version"]
    assert source == document.data


@pytest.mark.parametrize("harm", [
    lambda d: d["info"].pop("title"),
    lambda d: d["paths"]["/livez"]["get"].pop("responses"),
    lambda d: d["paths"]["/v1/leases/{name}"]["get"].pop("parameters"),
    lambda d: d["paths"]["/v1/leases"]["get"].update(operationId="getLease"),
    lambda d: d["components"]["schemas"]["Lease"].update(type="thing"),
    lambda d: d["components"]["schemas"].pop("Lease"),
    lambda d: d["paths"]["/livez"]["get"]["responses"].update({"99": {"description": ""}}),
])
def test_the_checker_of_documents_finds_planted_faults(harm):
    broken = copy.deepcopy(json.loads(SOURCE.read_text()))
    harm(broken)
    try:
        assert Document(broken).check() != []
    except KeyError:
        pass  # too broken to look further


def test_every_route_is_documented_and_every_documented_one_is_a_route(one):
    index = one.admin("/").json()
    assert document_of(one).operations() == {(r["method"], r["path"]) for r in index["routes"]}


def test_answers_are_as_documented_while_active_draining_and_in_hold_off(
        tmp_path, sidecar, app, tcp_echo):
    one = sidecar("s1", tmp_path / "store",
                  gates=[http_gate(app("a")),
                         {"name": "raw", "type": "tcp", "upstream": tcp_echo().address}],
                  lease={"step_down_grace": "2s", "step_down_hold_off": "2s"}).start()
    document = document_of(one)
    one.wait_active()
    active = judge_reads(document, one)
    assert active["/readyz"] == active["/leaderz"] == 200 and active["/standbyz"] == 503
    assert active["/v1/leases/{name}/describe"] == 200
    listener = one.signal_reader()
    listener.send(op="register")  # keeps the drain going
    listener.wait_answer("register", 2)
    pending = one.step_down(wait=False)
    assert pending.status == 202 and document.judge("POST", STEP_DOWN, pending) == []
    one.wait_event("lease.draining", 2)
    draining = judge_reads(document, one)
    assert draining["/v1/leases/{name}/describe"] == 412
    one.wait_state("hold_off", 5)
    off = judge_reads(document, one)
    assert off["/leaderz"] == 503 and off["/v1/leases/{name}/describe"] == 412


def test_answers_are_as_documented_on_a_standby_and_after_a_move(redis_server, sidecar, app):
    store = redis_server()
    apps = (app("a"), app("b"))
    both = Pair(*(sidecar(f"s{i + 1}", store, gates=[http_gate(apps[i])]) for i in range(2)),
                apps).start()
    document = document_of(both.second)
    standby = judge_reads(document, both.second)
    assert standby["/readyz"] == 200 and standby["/leaderz"] == 503
    moved = both.first.step_down()
    assert moved.status == 200 and document.judge("POST", STEP_DOWN, moved) == []
    both.second.wait_active()
    for each in (both.first, both.second):
        judge_reads(document, each)
    assert both.second.admin("/v1/audit").json()["records"], "something was judged"


def test_errors_are_as_documented(one):
    document = document_of(one)

    def post(status, body=None, headers=None, name="app"):
        answer = one.admin(f"/v1/leases/{name}/step-down", "POST", body, headers)
        assert answer.status == status, answer.body
        assert document.judge("POST", STEP_DOWN, answer) == []
    right = {"expected_node_id": "s1", "expected_token": str(one.token())}
    post(400)
    post(400, {**right, "take-back": True})
    post(404, right, name="nope")
    post(403, right, {"Origin": "http://evil.example"})
    post(412, {**right, "expected_token": "999"})
    post(421, right, {"Host": "evil.example"})
    for path, query, status in (("/v1/leases/{name}", "", 404), ("/readyz", "?lease=nope", 404),
                                ("/v1/events", "?lease=nope", 404), ("/v1/events", "?event=x", 400),
                                ("/v1/audit", "?lease=nope", 404), ("/v1/audit", "?limit=0", 400),
                                ("/v1/leases/{name}/describe", "", 404)):
        answer = one.admin(path.replace("{name}", "nope") + query)
        assert answer.status == status
        assert document.judge("GET", path, answer) == []
    wrong = one.admin("/v1/status", "DELETE")
    assert wrong.status == 405 and wrong.headers["Allow"] == "GET, HEAD"
    assert document.judge("GET", "/v1/status", wrong) == []
    with Raw(one.admin_address) as raw:
        raw.send(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20000 + b"\r\n\r\n")
        assert raw.response().status == 431


def test_the_tokens_refusals_are_as_documented(tmp_path, sidecar):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    one = sidecar("s1", tmp_path / "store",
                  more={"admin": {"listen": "0.0.0.0:0", "token_file": token}}).start()
    given = {"Authorization": "Bearer " + TOKEN}
    host = {"Host": "127.0.0.1:%d" % one.admin_address[1]}
    document = Document(one.admin("/v1/openapi.json", headers={**given, **host}).json())
    for method, path in sorted(document.operations()):
        data = document.data["paths"][path][method.lower()]
        answer = one.admin(path.replace("{name}", "app"), method, headers=host)
        assert document.judge(method, path, answer) == []
        # What the document says needs the token, and nothing else, is refused without it.
        assert (answer.status == 401) == (data["security"] != [{}]), path


def test_a_sidecar_that_nobody_holds_through_answers_as_documented(redis_server, sidecar, app):
    """An application that is not ready: the lease is free, nothing competes."""
    unready = app("a")
    unready.healthy = False
    one = sidecar("s1", redis_server(), gates=[http_gate(unready)],
                  more={"app": {"check": f"http://{unready.address}/healthz"}}).start()
    document = document_of(one)
    statuses = judge_reads(document, one)
    assert statuses["/v1/leases/{name}/describe"] == 404 and statuses["/readyz"] == 503


def test_streamed_events_are_as_documented(one, things):
    document = document_of(one)
    kinds = document.data["paths"]["/v1/events"]["get"]["responses"]["200"]["x-event-data"]
    one.step_down()
    one.wait_event("lease.acquired", 10, since=one.last("lease.released").at)
    readers = [EventReader(one.admin_address, "?follow=false&since=start"),
               EventReader(one.admin_address, "?follow=false"),
               EventReader(one.admin_address, "?follow=false", last_id="another.7")]
    told = []
    for reader in readers:
        things.callback(reader.close)
        reader.wait_over()
        told += reader.events
    assert {"hello", "missed", "lease.draining", "gate.opened"} <= {name for _, _, name, _ in told}
    for _, event_id, name, data in told:
        assert document.errors_of(data, kinds.get(name, kinds["*"])) == [], name
        assert data["event_id"] == event_id and data["event"] == name
    listed = document.data["components"]["schemas"]["Event"]["properties"]["event"]["description"]
    for name in {name for _, _, name, _ in told} - {"hello", "missed"}:
        assert re.search(rf"\b{re.escape(name)}\b", listed), f"{name} is not listed"
