"""Broken configurations: `check` and `run` say the same, name file, line, key and remedy, all at once,
and end with 2."""

import json
import re
import subprocess

import pytest

from harness.sidecar import binary

GOOD = """\
[node]
id = "s1"
[store]
type = "file"
file.dir = "{dir}/store"
[[lease]]
name = "app"
ttl = "10s"
[[gate]]
name = "web"
type = "http"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:8000"
[admin]
listen = "127.0.0.1:0"
"""
NODE_ID, STORE_TYPE, LEASE_NAME, LEASE_TTL = 2, 4, 7, 8
GATE_NAME, GATE_TYPE, GATE_LISTEN, GATE_UPSTREAM, ADMIN_LISTEN = 10, 11, 12, 13, 15


def edit(*changes):
    """GOOD with lines replaced (number, text); several lines in `text` move what follows."""
    lines = GOOD.splitlines()
    for number, text in changes:
        lines[number - 1] = text
    return "\n".join(lines) + "\n"


def also(number, text):
    return edit((number, GOOD.splitlines()[number - 1] + "\n" + text))


def redis(url="redis://127.0.0.1:1/0", more=""):
    return edit((STORE_TYPE, f'type = "redis"\nredis.url = "{url}"\n{more}'), (5, ""))


# name: (text, line, key, what the message must speak of)
BROKEN = {
    "not_toml": (edit((LEASE_TTL, "ttl = ")), LEASE_TTL, "", ""),
    "unclosed_string": (edit((LEASE_TTL, 'ttl = "10s')), LEASE_TTL, "", ""),
    "one_key_twice": (also(LEASE_TTL, 'ttl = "20s"'), 9, "", "ttl"),
    "unknown_section": (GOOD + "[adminn]\nx = 1\n", 16, "adminn", "admin"),
    "unknown_key": (also(LEASE_TTL, 'tll = "3s"'), 9, "lease.tll", "ttl"),
    "unknown_key_in_a_known_place": (also(GATE_UPSTREAM, 'hold = "3s"'), 14, "gate.hold", ""),
    "key_of_another_gate_type":
        (edit((GATE_TYPE, 'type = "tcp"'), (GATE_UPSTREAM, 'upstream = "127.0.0.1:80"\n'
              'head_timeout = "1s"')), 14, "gate.head_timeout", "http"),
    "number_for_a_duration": (edit((LEASE_TTL, "ttl = 10")), LEASE_TTL, "lease.ttl", "10s"),
    "duration_without_a_unit": (edit((LEASE_TTL, 'ttl = "10"')), LEASE_TTL, "lease.ttl", "10s"),
    "duration_of_a_strange_unit":
        (edit((LEASE_TTL, 'ttl = "10x"')), LEASE_TTL, "lease.ttl", "10s"),
    "negative_duration": (edit((LEASE_TTL, 'ttl = "-10s"')), LEASE_TTL, "lease.ttl", ""),
    "ttl_too_short": (edit((LEASE_TTL, 'ttl = "400ms"')), LEASE_TTL, "lease.ttl", "500ms"),
    "ttl_too_long": (edit((LEASE_TTL, 'ttl = "25h"')), LEASE_TTL, "lease.ttl", "24h"),
    "margin_below_drift":
        (also(LEASE_TTL, 'safety_margin = "10ms"'), 9, "lease.safety_margin", "20ms"),
    "renew_interval_too_long":
        (also(LEASE_TTL, 'renew_interval = "9s"'), 9, "lease.renew_interval", ""),
    "hold_off_too_short":
        (also(LEASE_TTL, 'step_down_hold_off = "1s"'), 9, "lease.step_down_hold_off", ""),
    "too_many_fails": (also(LEASE_TTL, "max_renew_fails = 0"), 9, "lease.max_renew_fails", "1"),
    "word_out_of_list": (edit((STORE_TYPE, 'type = "fil"')), STORE_TYPE, "store.type", "file"),
    "store_of_a_later_version":
        (edit((STORE_TYPE, 'type = "etcd"'), (5, "")), STORE_TYPE, "store.type", "redis"),
    "text_for_a_number":
        (also(GATE_UPSTREAM, 'max_held = "many"'), 14, "gate.max_held", ""),
    "number_out_of_range": (also(GATE_UPSTREAM, "max_held = -1"), 14, "gate.max_held", "0"),
    "text_for_a_boolean": (redis(more='redis.tls_verify = "no"'), 6, "store.redis.tls_verify",
                           "true"),
    "bad_size": (also(GATE_UPSTREAM, 'buffer_bytes = "64Kib"'), 14, "gate.buffer_bytes", "KiB"),
    "size_out_of_range":
        (also(GATE_UPSTREAM, 'buffer_bytes = "1KiB"'), 14, "gate.buffer_bytes", "4KiB"),
    "no_lease_name": (edit((LEASE_NAME, "")), 6, "lease.name", ""),
    "lease_name_that_leaves_its_place":
        (edit((LEASE_NAME, 'name = "../app"')), LEASE_NAME, "lease.name", ""),
    "two_leases_of_one_name":
        (GOOD + '[[lease]]\nname = "app"\n', 17, "lease.name", "earlier"),
    "gate_without_its_lease":
        (GOOD + '[[lease]]\nname = "other"\n', 9, "gate.lease", '"other"'),
    "gate_of_an_unknown_lease":
        (also(GATE_UPSTREAM, 'lease = "ap"'), 14, "gate.lease", '"app"'),
    "no_gate_listen": (edit((GATE_LISTEN, "")), 9, "gate.listen", ""),
    "address_without_a_port":
        (edit((GATE_LISTEN, 'listen = "127.0.0.1"')), GATE_LISTEN, "gate.listen", "host:port"),
    "port_too_large":
        (edit((GATE_LISTEN, 'listen = "127.0.0.1:70000"')), GATE_LISTEN, "gate.listen", "65535"),
    "upstream_port_0":
        (edit((GATE_UPSTREAM, 'upstream = "127.0.0.1:0"')), GATE_UPSTREAM, "gate.upstream", "port"),
    "upstream_is_the_gate_itself":
        (edit((GATE_LISTEN, 'listen = "127.0.0.1:8000"')), GATE_UPSTREAM, "gate.upstream", "itself"),
    "gate_and_api_at_one_place":
        (edit((GATE_LISTEN, 'listen = "127.0.0.1:7000"'),
              (ADMIN_LISTEN, 'listen = "127.0.0.1:7000"')), ADMIN_LISTEN, "admin.listen", '"web"'),
    "hold_timeout_below_a_planned_move":
        (also(GATE_UPSTREAM, 'standby = "hold"\nhold_timeout = "3s"'), 15, "gate.hold_timeout",
         "step_down_grace"),
    "forward_without_a_peer_listener":
        (also(GATE_UPSTREAM, 'standby = "forward"'), 14, "gate.standby", "peer_listen"),
    "node_id_with_a_line_break":
        (edit((NODE_ID, 'id = "s1\\nx"')), NODE_ID, "node.id", ""),
    "relative_state_dir": (also(NODE_ID, 'state_dir = "state"'), 3, "node.state_dir", "absolute"),
    "variable_that_is_not_set":
        (edit((NODE_ID, 'id = "${{LEASEHOLD_TEST_NOT_SET}}"')), NODE_ID, "node.id",
         "LEASEHOLD_TEST_NOT_SET"),
    "redis_url_of_another_scheme": (redis("http://127.0.0.1:1"), 5, "store.redis.url", "redis://"),
    "redis_database_that_is_no_number":
        (redis("redis://127.0.0.1:1/zero"), 5, "store.redis.url", ""),
    "redis_password_twice":
        (redis(more='redis.password = "s3cr3t-word"\nredis.password_file = "/etc/hostname"'), 6,
         "store.redis.password", "password_file"),
    "tls_certificate_without_its_key":
        (redis("rediss://127.0.0.1:1", 'redis.tls_cert_file = "/x.pem"'), 6,
         "store.redis.tls_cert_file", "tls_key_file"),
    "app_check_of_an_unknown_kind":
        (GOOD + '[app]\ncheck = "ftp://127.0.0.1/"\n', 17, "app.check", "http://"),
    "unready_after_within_one_interval":
        (GOOD + '[app]\ncheck = "tcp://127.0.0.1:1"\nunready_after = "500ms"\n', 18,
         "app.unready_after", "interval"),
    "api_for_everybody_without_a_token":
        (edit((ADMIN_LISTEN, 'listen = "0.0.0.0:0"')), ADMIN_LISTEN, "admin.listen", "token_file"),
    "relative_signal_socket":
        (GOOD + '[signal]\nsocket = "s.sock"\n', 17, "signal.socket", "absolute"),
    "signal_socket_path_too_long":
        (GOOD + '[signal]\nsocket = "/tmp/' + "x" * 120 + '"\n', 17, "signal.socket", "107"),
    "log_format": (GOOD + '[log]\nformat = "xml"\n', 17, "log.format", "logfmt"),
}


@pytest.fixture
def leasehold(tmp_path):
    """leasehold(verb, text, *more) -> CompletedProcess, with the text as ./sidecar.conf."""
    def run(verb, text, *more):
        (tmp_path / "sidecar.conf").write_text(text.replace("{dir}", str(tmp_path))
                                               .replace("{{", "{").replace("}}", "}"))
        return subprocess.run([binary(), verb, "-c", "sidecar.conf", *more], cwd=tmp_path,
                              capture_output=True, text=True, timeout=10, check=False)
    return run


@pytest.mark.parametrize("name", BROKEN)
def test_broken_configuration(leasehold, name):
    text, line, key, remedy = BROKEN[name]
    checked = leasehold("check", text)
    ran = leasehold("run", text)
    assert checked.returncode == ran.returncode == 2, (checked, ran)
    errors = [l for l in checked.stderr.splitlines() if l.startswith("error: ")]
    assert errors == [l for l in ran.stderr.splitlines() if l.startswith("error: ")]
    assert len(errors) == 1, errors
    where = f"error: sidecar.conf:{line}: "
    assert errors[0].startswith(where + key), f"{errors[0]!r} does not begin with {where + key!r}"
    assert remedy in errors[0], errors[0]
    assert len(errors[0]) > len(where + key) + 10, f"no sentence: {errors[0]}"
    assert checked.stderr.splitlines()[-1] == "1 error in sidecar.conf"
    assert "s3cr3t-word" not in checked.stdout + checked.stderr + ran.stdout + ran.stderr
    as_json = json.loads(leasehold("check", text, "--json").stdout)
    assert as_json["ok"] is False and len(as_json["errors"]) == 1
    assert as_json["errors"][0]["line"] == line


def test_all_errors_come_at_once(leasehold):
    text = edit((NODE_ID, 'id = "a b"'), (LEASE_TTL, 'ttl = "1ms"'), (GATE_LISTEN, 'listen = "x"'),
                (ADMIN_LISTEN, "listen = 9090")) + '[app]\nchek = ""\n[log]\nlevel = "loud"\n'
    checked = leasehold("check", text)
    assert checked.returncode == 2
    keys = re.findall(r"^error: sidecar\.conf:\d+: ([a-z_.]+)", checked.stderr, re.M)
    assert sorted(keys) == ["admin.listen", "app.chek", "gate.listen", "lease.ttl", "log.level",
                            "node.id"], checked.stderr
    assert checked.stderr.splitlines()[-1] == "6 errors in sidecar.conf"


@pytest.mark.parametrize("verb", ["check", "run"])
def test_a_file_that_is_not_there_or_cannot_be_read_is_2_with_its_name(tmp_path, verb):
    for path, words in [(tmp_path / "nothing.conf", "nothing.conf"), (tmp_path, str(tmp_path))]:
        done = subprocess.run([binary(), verb, "-c", path], capture_output=True, text=True,
                              timeout=10, check=False)
        assert done.returncode == 2
        assert words in done.stderr, done.stderr


def test_bytes_that_are_no_text_are_an_error_and_no_crash(tmp_path):
    for data in (bytes(range(256)) * 100, b"\xff\xfe[\x00n", b"[" * 100000, b"a = " + b"[" * 50000,
                 b"[[lease]]\n" * 2000, b""):
        path = tmp_path / "x.conf"
        path.write_bytes(data)
        done = subprocess.run([binary(), "check", "-c", path], capture_output=True, timeout=20,
                              check=False)
        assert done.returncode == 2, (data[:20], done.returncode, done.stderr[:300])
        assert b"x.conf" in done.stderr


def test_a_good_one_is_0_and_prints_every_derived_timing(leasehold):
    checked = leasehold("check", GOOD)
    assert checked.returncode == 0, checked.stderr
    for word in ("safety_margin", "renew_call_timeout", "renew_interval", "forced drain",
                 "poll_interval", "observation window", "sidecar.conf: good"):
        assert word in checked.stdout, checked.stdout
    assert json.loads(leasehold("check", GOOD, "--json").stdout)["ok"] is True


def test_risky_combinations_are_warnings_and_0(leasehold):
    text = edit((LEASE_TTL, 'ttl = "1s"\nstep_down_hold_off = "2s"'),
                (GATE_UPSTREAM, 'upstream = "192.0.2.1:80"\non_loss = "finish"'),
                (5, 'file.dir = "relative"\nredis.url = "redis://x"'))
    checked = leasehold("check", text)
    assert checked.returncode == 0
    keys = re.findall(r"^warning: sidecar\.conf:\d+: ([a-z_.]+)", checked.stderr, re.M)
    assert sorted(keys) == ["gate.on_loss", "gate.upstream", "lease.ttl", "store.file.dir",
                            "store.redis.url"], checked.stderr
