"""Redis with TLS, users and passwords, through the program."""

import os
import subprocess
import time

import pytest

from harness.client import get
from harness.pair import http_gate
from harness.process import free_port
from harness.raw import Certificates
from harness.redis import Redis
from harness.resp import RespClient
from harness.sidecar import binary
from harness.wait import wait_for, watch_for

PASSWORD = "s3cr3t-word-1"
OTHER = "s3cr3t-word-2"
# What the sidecar sends and its scripts call, and no more (src/store/redis_*.cc).
RIGHTS = ["~leasehold:*", "&leasehold:*", "+auth", "+select", "+ping", "+info", "+script|load",
          "+eval", "+evalsha", "+time", "+hgetall", "+hset", "+hdel", "+persist", "+publish",
          "+subscribe", "+set", "+wait"]


def no_secret(one):
    text = one.log_path.read_text() + one.admin("/v1/config").body.decode() + \
        one.admin("/v1/status").body.decode() + one.admin("/metrics").body.decode()
    assert PASSWORD not in text and OTHER not in text


@pytest.fixture
def guarded(redis_server):
    """A redis with an ACL user "orders" beside the test's own."""
    store = redis_server()
    store.cli("ACL", "SETUSER", "orders", "on", ">" + PASSWORD, *RIGHTS)
    return store


def store_options(store, **more):
    return {"type": "redis", "redis.url": f"redis://orders@127.0.0.1:{store.port}/0", **more}


def test_an_acl_user_with_just_the_rights_it_needs_holds_and_moves(
        guarded, sidecar, app, tmp_path):
    secret = tmp_path / "password"
    secret.write_text(PASSWORD + "\n")
    options = store_options(guarded, **{"redis.password_file": secret})
    one = sidecar("s1", options, gates=[http_gate(app("a"))]).start()
    one.wait_active()
    two = sidecar("s2", options, gates=[http_gate(app("b"))]).start()
    wait_for(lambda: two.status()["record"], 5, "the standby reads")
    assert one.step_down().json()["outcome"] == "taken_over_by_another_process"
    took = two.wait_active(2).at - one.last("lease.released").at
    assert took < 0.2, f"{took:.3f} s: push does not work for this user"
    assert two.events("store.degraded") == [], two.tail()
    no_secret(one)
    no_secret(two)


def test_wrongpass_is_told_and_a_repaired_password_file_heals_without_a_restart(
        guarded, sidecar, app, tmp_path):
    secret = tmp_path / "password"
    secret.write_text(OTHER)
    one = sidecar("s1", store_options(guarded, **{"redis.password_file": secret}),
                  gates=[http_gate(app("a"))]).start(ready=False)
    degraded = one.wait_event("store.degraded", 5)
    assert "WRONGPASS" in degraded["msg"], degraded
    one.wait_event("admin.listen", 5)
    watch_for(lambda: one.running() and not one.events("lease.acquired"), 1, lambda: one.tail())
    assert one.admin("/livez").status == 200 and one.admin("/readyz").status == 503
    troubles = one.admin("/v1/status").json()["node"]["troubles"]
    assert any("WRONGPASS" in t for t in troubles), troubles
    at = time.time()
    secret.write_text(PASSWORD)
    one.wait_active(4, since=at)
    assert get(one.gate()).status == 200
    wait_for(lambda: one.events("store.recovered", since=at), 2, "store.recovered")
    no_secret(one)


def test_a_password_rotated_under_a_holder_is_read_again_within_the_permit(
        guarded, sidecar, app, tmp_path):
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    one = sidecar("s1", store_options(guarded, **{"redis.password_file": secret}),
                  gates=[http_gate(app("a"))], lease={"ttl": "4s"}).start()
    one.wait_active()
    guarded.cli("ACL", "SETUSER", "orders", "resetpass", ">" + OTHER)
    secret.write_text(OTHER)
    guarded.cli("CLIENT", "KILL", "USER", "orders")

    def renewals():
        return one.metric("leasehold_lease_renewals_total", result="ok") or 0
    before = renewals()
    wait_for(lambda: renewals() >= before + 2, 6,
             "renewals go on under the new password")
    assert one.holding() and one.token() == 1
    assert one.events("lease.lost") == []
    no_secret(one)


def test_a_revoked_password_ends_in_a_closed_gate_at_expiry_with_its_reason(
        guarded, sidecar, app, tmp_path):
    one = sidecar("s1", store_options(guarded, **{"redis.password": PASSWORD}),
                  gates=[http_gate(app("a"))]).start()
    one.wait_active()
    at = time.time()
    guarded.cli("ACL", "SETUSER", "orders", "resetpass", ">" + OTHER)
    guarded.cli("CLIENT", "KILL", "USER", "orders")
    shut = one.wait_event("gate.closed", 4, since=at).at
    assert shut - at < 2.0, "the ttl"
    assert one.running()
    wait_for(lambda: "WRONGPASS" in (one.status()["last_error"] or ""), 3, lambda: one.status())
    guarded.cli("ACL", "SETUSER", "orders", "resetpass", ">" + PASSWORD)
    one.wait_active(4, since=shut)  # `at` can be in the very millisecond of the first term
    assert get(one.gate()).status == 200
    no_secret(one)


def test_a_password_in_the_url_or_the_environment_is_shown_nowhere(guarded, sidecar, app):
    one = sidecar("s1", {"type": "redis",
                         "redis.url": f"redis://orders:${{LH_TEST_SECRET}}@127.0.0.1:{guarded.port}/0"},
                  gates=[http_gate(app("a"))], env={"LH_TEST_SECRET": PASSWORD}).start()
    one.wait_active()
    at = time.time()
    guarded.cli("ACL", "SETUSER", "orders", "resetpass", ">" + OTHER)
    guarded.cli("CLIENT", "KILL", "USER", "orders")
    one.wait_event("store.degraded", 4, since=at)  # what it says of a connection that fails
    no_secret(one)
    for done in (one.cli("status"), one.cli("status", "--json"), one.cli("describe")):
        assert PASSWORD not in done.stdout + done.stderr
    assert "orders" in one.admin("/v1/config").body.decode(), "the user is no secret"
    for mode in ([], ["--json"]):
        checked = subprocess.run([binary(), "check", "-c", one.config_path, *mode],
                                 env={**os.environ, "LH_TEST_SECRET": PASSWORD},
                                 capture_output=True, text=True, timeout=10, check=False)
        assert checked.returncode == 0
        assert PASSWORD not in checked.stdout + checked.stderr


class TlsRedis(Redis):
    """A Redis that speaks TLS; the test's own client comes in by a plain port of loopback."""

    def __init__(self, directory, certificates, clients="no"):
        self.tls_port = free_port()
        super().__init__(directory, "--tls-port", str(self.tls_port),
                         "--tls-cert-file", str(certificates.certificate),
                         "--tls-key-file", str(certificates.key),
                         "--tls-ca-cert-file", str(certificates.ca), "--tls-auth-clients", clients)
        self.cli("ACL", "SETUSER", "orders", "on", ">" + PASSWORD, *RIGHTS)

    def options(self, certificates, **more):
        return {"type": "redis", "redis.url": f"rediss://orders@localhost:{self.tls_port}/0",
                "redis.password": PASSWORD, "redis.tls_ca_file": certificates.ca, **more}


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path / "certificates")


@pytest.fixture
def tls_redis(things, tmp_path, certificates):
    store = TlsRedis(tmp_path / "redis", certificates)
    things.callback(store.close)
    return store


def test_rediss_with_an_acl_user_serves_and_pushes(tls_redis, certificates, sidecar, app):
    options = tls_redis.options(certificates)
    one = sidecar("s1", options, gates=[http_gate(app("a"))]).start()
    one.wait_active()
    two = sidecar("s2", options, gates=[http_gate(app("b"))]).start()
    wait_for(lambda: two.status()["record"], 5, "the standby reads")
    assert get(one.gate()).body == b"a 1"
    assert one.step_down().json()["outcome"] == "taken_over_by_another_process"
    took = two.wait_active(2).at - one.last("lease.released").at
    assert took < 0.2, f"{took:.3f} s: push does not work over TLS"
    assert get(two.gate()).body == b"b 2"
    clients = RespClient(tls_redis.port).call("CLIENT", "LIST")
    assert clients.count("user=orders") >= 4, "two connections for each sidecar"
    no_secret(one)


def test_a_server_that_asks_for_a_client_certificate_gets_it_or_the_want_is_told(
        things, tmp_path, certificates, sidecar):
    store = TlsRedis(tmp_path / "redis", certificates, clients="yes")
    things.callback(store.close)
    one = sidecar("s1", store.options(certificates, **{
        "redis.tls_cert_file": certificates.certificate,
        "redis.tls_key_file": certificates.key})).start()
    one.wait_active()
    two = sidecar("s2", store.options(certificates)).start(ready=False)
    two.wait_event("store.degraded", 6)
    assert not two.events("lease.acquired") and two.running()
    assert two.stop() == 0


@pytest.mark.parametrize("fault, words", [
    ({"redis.tls_ca_file": ""}, "certificate"),
    ({"redis.tls_server_name": "redis.example.org"}, "redis.example.org"),
    ({"redis.url": "plain", "redis.tls_ca_file": ""}, ""),
], ids=["unknown_authority", "another_name", "plain_text_to_the_tls_port"])
def test_a_tls_server_that_is_not_the_right_one_is_refused_with_a_sentence(
        tls_redis, certificates, sidecar, fault, words):
    fault = {k: f"redis://orders@localhost:{tls_redis.tls_port}/0" if v == "plain" else v
             for k, v in fault.items()}
    one = sidecar("s1", tls_redis.options(certificates, **fault)).start(ready=False)
    one.wait_event("admin.listen", 5)
    degraded = one.wait_event("store.degraded", 6)
    assert words in degraded["msg"], degraded
    assert str(tls_redis.tls_port) in degraded["msg"], degraded
    assert not one.events("lease.acquired")
    assert one.running() and one.admin("/readyz").status == 503
    no_secret(one)
    assert one.stop() == 0
