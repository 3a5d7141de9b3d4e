"""Who may ask the API what: Host names, origins, the token (DESIGN 5)."""

import subprocess

import pytest

from harness.pair import http_gate
from harness.raw import Raw
from harness.sidecar import binary

TOKEN = "t0k3n-0f-the-api"


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


@pytest.fixture
def guarded(sidecar, tmp_path, token_file):
    def make(**admin):
        one = sidecar("s1", tmp_path / "store",
                      more={"admin": {"token_file": token_file, **admin}}).start()
        one.wait_active()
        return one
    return make


def bearer(token):
    return {"Authorization": "Bearer " + token}


STEP_DOWN = {"expected_node_id": "s1", "expected_token": "1"}
PATH = "/v1/leases/app/step-down"


def test_calls_that_change_state_need_the_token_and_others_do_not(guarded):
    one = guarded()
    for headers in ({}, bearer("wrong"), bearer(TOKEN[:-1]), bearer(TOKEN + "x"),
                    {"Authorization": "Basic " + TOKEN}, bearer("")):
        refused = one.admin(PATH, "POST", STEP_DOWN, headers)
        assert refused.status == 401, headers
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
        assert TOKEN not in refused.body.decode()
    assert one.holding() and not one.events("lease.draining")
    assert one.admin("/metrics").status == one.admin("/v1/status").status == 200
    assert one.admin(PATH, "POST", {**STEP_DOWN, "wait": False}, bearer(TOKEN)).status == 202
    one.wait_event("lease.released", 3)
    config = one.admin("/v1/config").body.decode()
    assert TOKEN not in config + one.log_path.read_text()


def test_the_command_line_sends_the_token_from_its_file(guarded, token_file, tmp_path):
    one = guarded()
    without = one.cli("step-down", "--yes")
    assert without.returncode == 1 and "token" in without.stderr, without
    wrong = tmp_path / "wrong"
    wrong.write_text("another-token")
    refused = one.cli("step-down", "--yes", "--token-file", wrong)
    assert refused.returncode == 1 and "another-token" not in refused.stderr + refused.stdout
    missing = one.cli("step-down", "--yes", "--token-file", tmp_path / "missing")
    assert missing.returncode == 2 and str(tmp_path / "missing") in missing.stderr
    done = one.cli("step-down", "--yes", "--token-file", token_file)
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr


def test_beyond_loopback_reading_needs_the_token_too_and_probes_do_not(guarded):
    one = guarded(listen="0.0.0.0:0")
    port = one.admin_address[1]

    def status(path, headers=""):
        with Raw(("127.0.0.1", port)) as raw:
            raw.send(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}\r\n")
            return raw.response().status
    for path in ("/livez", "/readyz", "/leaderz"):
        assert status(path) == 200
    for path in ("/metrics", "/v1/status", "/v1/leases", "/v1/config", "/nothing"):
        assert status(path) == 401, path
    assert status("/v1/status", f"Authorization: Bearer {TOKEN}\r\n") == 200


def test_an_api_beyond_loopback_without_a_token_is_refused_at_start(tmp_path):
    (tmp_path / "x.conf").write_text(
        f'[store]\ntype = "file"\nfile.dir = "{tmp_path}/store"\n[[lease]]\nname = "app"\n'
        '[admin]\nlisten = "0.0.0.0:0"\n')
    done = subprocess.run([binary(), "run", "-c", tmp_path / "x.conf"], capture_output=True,
                          text=True, timeout=10, check=False)
    assert done.returncode == 2
    assert "x.conf:7: admin.listen" in done.stderr and "token_file" in done.stderr


@pytest.mark.parametrize("host, expected", [
    ("127.0.0.1:{port}", 200), ("localhost:{port}", 200), ("LOCALHOST:{port}", 200),
    ("localhost", 200), ("[::1]:{port}", 200), ("leasehold.test:{port}", 200),
    ("evil.example", 421), ("evil.example:{port}", 421), ("127.0.0.1.evil.example:{port}", 421),
    ("127.0.0.1:1", 200), ("localhost:{port}@evil.example", 400), ("", 421), ("[", 421),
    ("192.0.2.1:{port}", 421),
])
def test_only_names_that_are_ours_are_answered(sidecar, tmp_path, host, expected):
    one = sidecar("s1", tmp_path / "store",
                  more={"admin": {"allowed_hosts": ["leasehold.test"]}}).start()
    port = one.admin_address[1]
    with Raw(one.admin_address) as raw:
        raw.send(f"GET /v1/status HTTP/1.1\r\nHost: {host.format(port=port)}\r\n\r\n")
        answer = raw.response()
    assert answer.status == expected, answer
    if expected != 200:
        assert answer.get("Content-Type") == "application/problem+json"


def test_a_page_of_another_origin_changes_nothing(sidecar, app, tmp_path):
    one = sidecar("s1", tmp_path / "store", gates=[http_gate(app("a"))]).start()
    one.wait_active()
    for origin in ("http://evil.example", "null", "http://127.0.0.1", "https://localhost"):
        answer = one.admin(PATH, "POST", STEP_DOWN, {"Origin": origin})
        assert answer.status == 403, origin
    assert one.holding() and not one.events("lease.draining")


def test_bad_calls_are_problems_and_change_nothing(sidecar, tmp_path):
    one = sidecar("s1", tmp_path / "store").start()
    one.wait_active()
    for body in ({}, {"expected_node_id": "s1"}, {"expected_token": "1"}, [], "x", 5, None,
                 {**STEP_DOWN, "expected_token": 0}, {**STEP_DOWN, "expected_token": "x"},
                 {**STEP_DOWN, "expected_token": "18446744073709551616"},
                 {**STEP_DOWN, "take_bakc": False}, {**STEP_DOWN, "take_back": "no"},
                 {**STEP_DOWN, "wait": 1}, {**STEP_DOWN, "expected_node_id": ""}):
        answer = one.admin(PATH, "POST", body)
        assert answer.status == 400, (body, answer.body)
        assert answer.json()["detail"], body
    for body in ({**STEP_DOWN, "expected_token": "2"}, {**STEP_DOWN, "expected_node_id": "s2"}):
        answer = one.admin(PATH, "POST", body)
        assert answer.status == 412 and answer.json()["type"].endswith("failed_precondition")
    assert one.admin("/v1/leases/none/step-down", "POST", STEP_DOWN).status == 404
    assert one.admin("/v1/leases/none").status == 404
    assert one.admin("/v1/nothing").status == 404
    answer = one.admin("/v1/status", "DELETE")
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD"
    assert one.admin(PATH, "POST", {**STEP_DOWN, "x" * 100: "y" * 200000}).status in (400, 413)
    assert one.holding() and not one.events("lease.draining")
