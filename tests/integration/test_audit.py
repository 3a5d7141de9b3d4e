"""The audit: each change of holder once, on the holder and on whoever looks on, with what one needs
to join the two."""

import json
import time

import pytest

from harness.client import get
from harness.logfmt import seconds
from harness.pair import Pair, http_gate
from harness.wait import wait_for, watch_for

TTL = 2.0
LOST = "lease_lost"


@pytest.fixture(params=["redis", "file"])
def store(request, redis_server, tmp_path):
    return redis_server() if request.param == "redis" else tmp_path / "store"


@pytest.fixture
def sides(sidecar, app, store, tmp_path):
    """sides(n) -> that many sidecars with an audit file each, not started."""
    def make(number):
        return [sidecar(f"s{i + 1}", store, gates=[http_gate(app(f"a{i}"))],
                        more={"audit": {"file": audit_file(tmp_path, i + 1)}})
                for i in range(number)]
    return make


def audit_file(tmp_path, number):
    return tmp_path / f"audit-{number}.jsonl"


def records(side, lease=None, limit=None):
    """GET /v1/audit, oldest first."""
    query = "&".join(f"{k}={v}" for k, v in (("lease", lease), ("limit", limit)) if v)
    answer = side.admin("/v1/audit" + (f"?{query}" if query else ""))
    assert answer.status == 200, answer.body
    return answer.json()["records"][::-1]


def of_term(side, token):
    """The records about the term with this token that begin it."""
    return [r for r in records(side) if r["token"] == str(token) and r["record"] != LOST]


def process_id(side):
    return side.admin("/v1/status").json()["node"]["process_id"]


def check_change(holder, observers, token, record, former=None, released=None):
    """Exactly one record on the holder and one on each observer, which agree on all but who saw it."""
    everyone = [holder, *observers]
    for side in everyone:
        wait_for(lambda s=side: of_term(s, token), 5, lambda s=side: f"{s.node}: {records(s)}")
    watch_for(lambda: all(len(of_term(s, token)) == 1 for s in everyone), 0.3,
              lambda: str([of_term(s, token) for s in everyone]))
    told = [of_term(s, token)[0] for s in everyone]
    for side, entry in zip(everyone, told):
        assert entry["record"] == record, entry
        assert entry["source"] == ("holder" if side is holder else "observer")
        assert entry["holder"] == {"node_id": holder.node, "process_id": process_id(holder)}
        assert entry["recorded_by"] == {"node_id": side.node, "process_id": process_id(side)}
        assert entry["id"].startswith(process_id(side) + "-")
        assert entry["term"] == f"app/{token}/{process_id(holder)}"
        assert entry["lease"] == "app" and entry["reason"] == ""
        if former is None:
            assert entry["former"] is None
        else:
            assert entry["former"]["node_id"] == former
            assert entry["former"]["token"] == str(token - 1)
            assert entry["former"]["released"] is released
        assert seconds(entry["noticed_at"]) - seconds(entry["taken_over_at"]) < 5
        assert seconds(entry["noticed_at"]) >= seconds(entry["taken_over_at"])
    assert len({entry["taken_over_at"] for entry in told}) == 1, "the holder's own time"
    assert len({entry["id"] for entry in told}) == len(told)
    return told


def test_a_planned_move_is_a_handoff_on_all_three(sides):
    one, two, three = sides(3)
    Pair(one, two, None).start()
    three.start()
    wait_for(lambda: three.status()["record"], 5, "the third sees the holder")
    assert records(one)[0]["record"] == "lease_acquired"
    one.step_down()
    wait_for(lambda: two.holding() or three.holding(), 5, "one of the others holds")
    holder, observer = (two, three) if two.holding() else (three, two)
    check_change(holder, [one, observer], 2, "lease_handoff", "s1", True)
    assert not [r for r in records(one) if r["record"] == LOST]


def test_a_killed_holder_means_a_failover_and_its_restart_nothing(sides):
    one, two, three = sides(3)
    Pair(one, two, None).start()
    three.start()
    wait_for(lambda: three.status()["record"], 5, "the third sees the holder")
    one.kill9()
    wait_for(lambda: two.holding() or three.holding(), 2 * TTL, "one of the others holds")
    holder, observer = (two, three) if two.holding() else (three, two)
    check_change(holder, [observer], 2, "lease_failover", "s1", False)
    # What happened while it was down is told by its file's next entry, once, and dated rightly.
    one.start()
    check_change(holder, [one, observer], 2, "lease_failover", "s1", False)
    for _ in range(2):
        one.kill9()
        one.start()
        wait_for(lambda: one.status()["record"], 5, "it sees the holder")
    watch_for(lambda: not records(one), 0.5, lambda: str(records(one)))


def test_a_lease_taken_back_is_reacquired(sides):
    one, two = sides(2)
    Pair(one, two, None).start()
    two.stop()
    assert one.step_down().json()["outcome"] == "taken_back_by_this_process"
    check_change(one, [], 2, "lease_reacquired", "s1", True)


def test_a_restarted_holder_reacquires(sides):
    (one,) = sides(1)
    one.start().wait_active()
    one.kill9()
    one.start().wait_active(2 * TTL)
    entry = check_change(one, [], 2, "lease_reacquired", "s1", False)[0]
    assert entry["former"]["process_id"] != entry["holder"]["process_id"]


def test_a_first_holder_acquires_and_who_looked_on_says_so(sides):
    one, two = sides(2)
    # Whoever comes second to the empty store has seen it empty, or sees the first holding already.
    one.start()
    two.start()
    holder = wait_for(lambda: one if one.holding() else two if two.holding() else None, 5, "held")
    observer = two if holder is one else one
    entry = check_change(holder, [], 1, "lease_acquired")[0]
    assert [r["record"] for r in records(observer)] in ([], ["lease_acquired"])
    for other in records(observer):
        assert other["term"] == entry["term"] and other["source"] == "observer"


def test_a_loss_is_told_once_by_its_holder_with_its_reason(sides, store):
    one, two = sides(2)
    Pair(one, two, None).start()
    one.freeze()
    two.wait_active(2 * TTL)
    one.cont()
    wait_for(lambda: [r for r in records(one) if r["record"] == LOST], 5, "the loss is told")
    check_change(two, [one], 2, "lease_failover", "s1", False)
    lost = [r for r in records(one) if r["record"] == LOST]
    assert len(lost) == 1
    assert (lost[0]["token"], lost[0]["source"]) == ("1", "holder")
    assert lost[0]["reason"] in ("host_frozen", "superseded", "expired")
    assert lost[0]["term"] == records(one)[0]["term"], "the same term that it acquired"
    assert not [r for r in records(two) if r["record"] == LOST]


def test_the_file_has_every_entry_of_the_api_a_line_each_and_survives_rotation(sides, tmp_path):
    (one,) = sides(1)
    path = audit_file(tmp_path, 1)
    one.start().wait_active()
    one.step_down()
    one.wait_active(since=one.events("lease.acquired")[-1].at)
    wait_for(lambda: path.exists() and len(path.read_text().splitlines()) == 2, 5, "two lines")
    assert [json.loads(line) for line in path.read_text().splitlines()] == records(one)
    path.rename(tmp_path / "rotated")
    one.step_down()
    wait_for(lambda: path.exists() and path.read_text().endswith("\n"), 10, "a new file")
    assert [json.loads(line) for line in path.read_text().splitlines()] == records(one)[2:]
    assert one.metric("leasehold_audit_records_total", record="lease_reacquired") == 2
    assert one.metric("leasehold_audit_records_total", record="lease_failover") == 0
    assert one.stop() == 0


def test_what_the_api_can_be_asked(sidecar, app, redis_server):
    lease = {"ttl": "2s", "step_down_grace": "1s", "step_down_hold_off": "2s"}
    one = sidecar("s1", redis_server(), leases=[{"name": "a", **lease}, {"name": "b", **lease}])
    one.start().wait_active(lease="a")
    one.wait_active(lease="b")
    assert {r["lease"] for r in records(one)} == {"a", "b"}
    assert [r["lease"] for r in records(one, lease="a")] == ["a"]
    assert len(records(one, limit=1)) == 1
    for query, status in (("limit=0", 400), ("limit=x", 400), ("limit=1001", 400), ("lease=c", 404)):
        assert one.admin("/v1/audit?" + query).status == status, query


def test_a_full_disk_costs_the_lines_and_nothing_else(sidecar, app, redis_server):
    one = sidecar("s1", redis_server(), gates=[http_gate(app("a"))],
                  more={"audit": {"file": "/dev/full"}})
    one.start().wait_active()
    line = one.wait_event("audit.dropped", 5)
    assert "/dev/full" in line["msg"] and "No space left" in line["msg"]
    assert get(one.gate()).status == 200
    one.step_down()
    wait_for(lambda: one.token() == 2, 10, "it is taken back")
    wait_for(lambda: one.metric("leasehold_audit_dropped_total") == 2, 5, "both are counted")
    assert [r["record"] for r in records(one)] == ["lease_acquired", "lease_reacquired"]
    assert get(one.gate()).status == 200
    at = time.time()
    assert one.stop() == 0
    assert time.time() - at < 2


def test_standard_output_gets_lines_of_json(sidecar, redis_server):
    one = sidecar("s1", redis_server(), more={"audit": {"file": "stdout"}})
    one.start().wait_active()
    wait_for(lambda: any(line.startswith("{") for line in one.log_path.read_text().splitlines()), 5,
             "a line of JSON")
    lines = [json.loads(line) for line in one.log_path.read_text().splitlines()
             if line.startswith("{")]
    assert [line["record"] for line in lines] == ["lease_acquired"]


def test_a_file_that_cannot_be_opened_is_a_refusal(sidecar, redis_server, tmp_path):
    one = sidecar("s1", redis_server(), more={"audit": {"file": tmp_path / "none" / "audit"}})
    one.start(ready=False)
    wait_for(lambda: not one.running(), 5, "it ends")
    assert one.process.exit_code() == 2
    assert "give a file in a directory that exists" in one.last("audit.refused")["msg"]
