"""Values: what is refused, and with which words; what follows from what is given."""

import json
import re

import pytest

from chart import CHART, EXAMPLES, helm, refusal, render

BY_NAME = {path.stem: path for path in EXAMPLES}
MINIMAL = BY_NAME["minimal"]
GATE = {"name": "web", "type": "http", "listen": "0.0.0.0:8080", "upstream": "127.0.0.1:8000"}


def put(path, value):
    return f"{path}={json.dumps(value)}"


def gate(**changes):
    return put("config.gate", [{**GATE, **changes}])


def lease(**changes):
    return put("config.lease", [{"name": "app", **changes}])


# name: (what is set over examples/minimal.yaml, what the message must speak of)
REFUSED = {
    # by values.schema.json
    "a_misspelt_group": ([put("sidecars.mode", "auto")], ["sidecars"]),
    "a_misspelt_value": ([put("sidecar.resource", {})], ["/sidecar", "resource"]),
    "a_mode_that_does_not_exist": ([put("sidecar.mode", "init")], ["/sidecar/mode", "native"]),
    "another_kind_of_workload": ([put("workload.kind", "DaemonSet")], ["/workload/kind"]),
    "a_duration_without_unit": ([lease(ttl="10")], ["/config/lease/0/ttl"]),
    "a_duration_as_number": ([lease(ttl=10)], ["/config/lease/0/ttl", "string"]),
    "a_lease_without_name": ([put("config.lease", [{"ttl": "10s"}])], ["/config/lease/0", "name"]),
    "no_lease": ([put("config.lease", [])], ["/config/lease"]),
    "an_option_that_does_not_exist": ([lease(tll="10s")], ["/config/lease/0", "tll"]),
    "a_section_that_does_not_exist": ([put("config.hook", {})], ["/config", "hook"]),
    "exec_is_not_for_charts": ([put("config.exec.restart", "always")], ["/config", "exec"]),
    "a_gate_without_upstream":
        ([put("config.gate", [{"name": "a", "listen": "0.0.0.0:1"}])], ["/config/gate/0", "upstream"]),
    "an_option_of_the_other_kind_of_gate":
        ([gate(type="tcp", head_timeout="3s")], ["/config/gate/0", "head_timeout"]),
    "a_policy_for_an_sqs_gate":
        ([put("config.gate", [{"name": "q", "type": "sqs", "listen": "127.0.0.1:9324", "standby": "hold"}])],
         ["/config/gate/0", "standby"]),
    "an_sqs_gate_that_others_reach":
        ([put("config.gate", [{"name": "q", "type": "sqs", "listen": "0.0.0.0:9324"}])],
         ['config.gate "q", listen: 0.0.0.0:9324', "credentials", "127.0.0.1:9324"]),
    "a_policy_of_the_other_kind_of_gate": ([gate(standby="refuse")], ["/config/gate/0/standby"]),
    "a_size_without_unit": ([gate(buffer_bytes="64K")], ["/config/gate/0/buffer_bytes"]),
    "a_number_out_of_range": ([lease(max_renew_fails=0)], ["/config/lease/0/max_renew_fails"]),
    "a_password_in_the_values":
        ([put("config.store.redis.password", "hunter2")], ["/config/store/redis/password"]),
    "a_digest_that_is_none": ([put("sidecar.image.digest", "abc")], ["/sidecar/image/digest"]),
    "the_sidecars_name_for_the_application":
        ([put("application.name", "leasehold")], ["/application/name"]),
    "a_port_out_of_range": ([put("service.ports.web", 70000)], ["/service/ports/web"]),
    # by the templates
    "no_application_image":
        ([put("application.image.repository", "")], ["application.image.repository is missing"]),
    "no_sidecar_image":
        ([put("sidecar.image.repository", "")], ["sidecar.image.repository", "helm/Dockerfile"]),
    "an_application_without_tag":
        ([put("application.image.tag", "")], ["application.image needs a tag or a digest"]),
    "no_store": ([put("config.store.redis.url", "")], ["config.store.redis.url is missing"]),
    "a_password_in_the_url":
        ([put("config.store.redis.url", "redis://me:hunter2@redis:6379/0")],
         ["config.store.redis.url holds a password", "secrets.redisPassword"]),
    "a_user_without_password":
        ([put("config.store.redis.url", "redis://me@redis:6379/0")],
         ["names a user, but no password", "secrets.redisPassword"]),
    "a_grace_period_that_cuts_the_drain":
        ([put("terminationGracePeriodSeconds", 30)], ["terminationGracePeriodSeconds: 30", "wait for at SIGTERM (20 s)", "need 56"]),
    "a_grace_that_cannot_be_read":
        ([lease(step_down_grace="${GRACE}")], ["step_down_grace", '"${GRACE}"', "written out"]),
    "a_lease_name_from_the_environment":
        ([put("config.lease", [{"name": "${NAME}"}])], ["config.lease", "written out"]),
    "an_api_that_probes_cannot_reach":
        ([put("config.admin.listen", "127.0.0.1:9090")], ["config.admin.listen", "readinessProbe"]),
    "no_api": ([put("config.admin.listen", "")], ["config.admin.listen"]),
    "a_gate_on_any_free_port": ([gate(listen="0.0.0.0:0")], ['config.gate "web", listen', "figures"]),
    "two_gates_on_one_port":
        ([gate(peer_listen="0.0.0.0:8080")], ["web and web-peer both take port 8080"]),
    "a_gate_on_the_apis_port": ([gate(listen="0.0.0.0:9090")], ["config.admin.listen", "9090"]),
    "two_gates_that_the_service_cannot_tell_apart":
        ([put("config.gate", [{**GATE, "name": "a.b"}, {**GATE, "name": "a_b"}])],
         ['"a.b"', '"a_b"', "rename"]),
    "a_gate_that_forwards_without_a_peer_port":
        ([gate(standby="forward")],
         ['config.gate "web", standby: forward needs peer_listen', "0.0.0.0:8081", "${POD_IP}:8081"]),
    "a_tcp_gate_that_forwards_without_a_peer_port":
        ([gate(type="tcp", standby="forward")], ['config.gate "web", standby: forward needs peer_listen']),
    "an_advertised_address_that_nothing_listens_on":
        ([gate(advertise="${POD_IP}:8081")], ['config.gate "web", advertise needs peer_listen']),
    "a_peer_secret_without_a_peer_port":
        ([gate(peer_secret_file="/s")], ['config.gate "web", peer_secret_file needs peer_listen']),
    "a_peer_port_everywhere_that_is_not_advertised":
        ([gate(standby="forward", peer_listen="0.0.0.0:8083")],
         ['config.gate "web", peer_listen: 0.0.0.0:8083', "give advertise too", "${POD_IP}:8083"]),
    "the_same_for_both_families":
        ([gate(standby="forward", peer_listen="[::]:8083")],
         ['config.gate "web", peer_listen: [::]:8083', "give advertise too"]),
    "the_same_with_a_star":
        ([gate(standby="forward", peer_listen="*:8083")],
         ['config.gate "web", peer_listen: *:8083', "give advertise too"]),
    "an_advertised_address_that_is_everywhere":
        ([gate(standby="forward", peer_listen="0.0.0.0:8083", advertise="0.0.0.0:8083")],
         ['config.gate "web", advertise: 0.0.0.0:8083', "no address to connect to", "${POD_IP}:8083"]),
    "the_same_with_ipv6":
        ([gate(standby="forward", peer_listen="[::]:8083", advertise="[::]:8083")],
         ['config.gate "web", advertise: [::]:8083', "no address to connect to"]),
    "an_advertised_address_that_is_the_clients":
        ([gate(standby="forward", peer_listen="0.0.0.0:8083", advertise="${POD_IP}:8080")],
         ['config.gate "web", advertise: ${POD_IP}:8080 names the port of listen', "${POD_IP}:8083"]),
    "an_advertised_address_that_leads_each_pod_to_itself":
        ([gate(standby="forward", peer_listen="0.0.0.0:8083", advertise="localhost:8083")],
         ['config.gate "web", advertise: localhost:8083', "to itself", "${POD_IP}"]),
    "a_peer_port_that_no_other_pod_reaches":
        ([gate(standby="forward", peer_listen="127.0.0.1:8083")],
         ['config.gate "web", peer_listen: 127.0.0.1:8083', "to itself"]),
    "an_outbound_gate_that_forwards":
        ([gate(type="tcp", direction="outbound", standby="forward", peer_listen="0.0.0.0:8083",
               advertise="${POD_IP}:8083")],
         ['config.gate "web", standby: forward', "direction: outbound", "refuse"]),
    "a_service_port_of_no_gate":
        ([put("service.ports", {"wbe": 80})], ['service.ports: there is no gate "wbe"', "web"]),
    "claims_for_a_deployment":
        ([put("workload.volumeClaimTemplates", [{"metadata": {"name": "a"}}])],
         ["workload.volumeClaimTemplates", "StatefulSet"]),
    "a_file_store_that_is_forgotten":
        ([put("config.store.type", "file"), put("workload.replicas", 1)],
         ["fileStore.volumeName is missing", "tokens"]),
    "a_file_store_for_two_pods":
        ([put("config.store.type", "file")], ["workload.replicas: 2", "redis"]),
    "a_volume_that_does_not_exist":
        ([put("config.store.type", "file"), put("workload.replicas", 1),
          put("fileStore.volumeName", "disk")], ['there is no volume "disk"']),
    "a_volume_for_a_store_that_has_none":
        ([put("fileStore.volumeName", "disk")], ["fileStore.volumeName", "redis"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    sets, words = REFUSED[name]
    told = refusal(MINIMAL, *sets)
    for word in words:
        assert word in told, told


def test_an_old_kubernetes_is_refused():
    assert "1.25" in refusal(MINIMAL, version="1.24.9")
    assert "needs Kubernetes 1.29" in refusal(MINIMAL, put("sidecar.mode", "native"), version="1.28.9")


def test_a_file_store_under_rolling_updates_is_refused():
    told = refusal(BY_NAME["file-store"], put("workload.strategy", {"type": "RollingUpdate"}))
    assert "workload.strategy" in told and "Recreate" in told


def test_an_upgrade_of_a_file_store_never_has_two_pods():
    assert render(BY_NAME["file-store"]).workload["spec"]["strategy"] == {"type": "Recreate"}


def test_an_upgrade_brings_a_pod_before_it_takes_one():
    assert render(MINIMAL).workload["spec"]["strategy"] == {
        "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def test_vendors_versions_count_by_their_number():
    assert render(MINIMAL, "1.29.3-eks-ae9a62a").native
    assert not render(MINIMAL, "1.28.9-gke.1000").native


def test_a_changed_option_rolls_the_pods_and_nothing_else_does():
    def checksum(*sets):
        return render(MINIMAL, sets=sets).template["metadata"]["annotations"]["checksum/config"]
    assert checksum() == checksum(put("workload.replicas", 3), put("service.ports.web", 80))
    assert checksum() != checksum(lease(ttl="11s"))


def test_two_releases_do_not_meet_in_one_redis():
    def prefix(release, namespace, *more):
        text = helm("template", release, CHART, "-n", namespace, "-f", MINIMAL, *more).stdout
        return re.search(r'prefix = "(.*)"', text).group(1)
    assert prefix("orders", "prod") == "leasehold:prod:orders-leasehold"
    assert prefix("orders", "prod") != prefix("orders", "test")
    long = [prefix("a" * 50, "n" * 63), prefix("b" * 50, "n" * 63)]
    assert long[0] != long[1] and all(len(each) <= 64 for each in long)
    assert prefix("a", "b", "--set-json", put("config.store.prefix", "team")) == "team"


def test_a_peer_port_may_have_the_number_of_a_gate_that_only_the_pod_reaches():
    peers = gate(listen="127.0.0.1:8083", standby="forward", peer_listen="${POD_IP}:8083",
                 advertise="${POD_IP}:8083")
    assert 'advertise = "${POD_IP}:8083"' in render(MINIMAL, sets=(peers,)).conf


def test_the_grace_period_follows_the_slowest_lease():
    quiet = gate()    # forwards nothing
    assert render(MINIMAL, sets=(quiet,)).grace_period == 21 + 10 + 5    # delay, stop, reserve
    leases = put("config.lease", [{"name": "a", "step_down_grace": "1500ms"},
                                  {"name": "b", "step_down_grace": "2m"}])
    assert render(MINIMAL, sets=(quiet, leases)).grace_period == 121 + 10 + 5
    quick = (put("shutdown.applicationStopSeconds", 0), lease(step_down_grace="1s", ttl="10s"))
    # Now the sidecar's side counts: grace, hold-off (5 s, an upper bound), reserve.
    assert render(MINIMAL, sets=(quiet, *quick)).grace_period == 1 + 5 + 5
    assert render(MINIMAL, sets=(put("terminationGracePeriodSeconds", 90),)).grace_period == 90


def test_the_grace_period_covers_what_a_gate_still_forwards_at_sigterm():
    def forward(name):
        return gate(lease=name, standby="forward", peer_listen="0.0.0.0:8081",
                    advertise="${POD_IP}:8081")
    assert render(MINIMAL).grace_period == 21 + 10 + 20 + 5    # delay, stop, grace once more, reserve
    leases = put("config.lease", [{"name": "a", "step_down_grace": "7s"},
                                  {"name": "b", "step_down_grace": "2m"}])
    # Only the leases of gates that forward count.
    assert render(MINIMAL, sets=(leases, forward("a"))).grace_period == 121 + 10 + 7 + 5
    assert render(MINIMAL, sets=(leases, forward("b"))).grace_period == 121 + 10 + 120 + 5
    # What is held waits for a hold-off, where that is longer than the grace.
    quick = (put("shutdown.applicationStopSeconds", 0), lease(step_down_grace="1s", ttl="10s"))
    assert render(MINIMAL, sets=quick).grace_period == 1 + 5 + 5 + 5


def test_awkward_texts_come_through_whole():
    texts = ["back\\slash", 'a "quote"', "tab\tand\nline", "$(POD_IP) $$ {{ .Values }}", "ü ☃ 😀",
             "<&>", "\x7f", "true", "0777", "1e3", "~", "# no comment", "'''", "a: b"]
    import tomllib
    for text in texts:
        conf = render(MINIMAL, sets=(put("config.app.check", text),)).conf
        assert tomllib.loads(conf)["app"]["check"] == text, conf


def test_numbers_are_written_out():
    conf = render(MINIMAL, sets=(gate(max_connections=1000000, max_held=0),
                                 lease(max_clock_drift=0.00001, fail_if_held=True))).conf
    assert "max_connections = 1000000\n" in conf and "max_held = 0\n" in conf
    assert "fail_if_held = true\n" in conf
    assert re.search(r"max_clock_drift = (0\.00001|1e-0?5)\n", conf)


def test_null_leaves_an_option_out():
    conf = render(MINIMAL, sets=(put("config.node.state_dir", None),
                                 put("config.signal", {"socket": None}))).conf
    assert "state_dir" not in conf and "[signal]" not in conf


def test_the_application_is_asked_for_unless_told_otherwise():
    assert 'check = "tcp://127.0.0.1:8000"' in render(MINIMAL).conf
    assert 'check = "tcp://[::1]:8000"' in render(BY_NAME["ipv6"]).conf
    assert 'check = ""' in render(MINIMAL, sets=(put("config.app.check", ""),)).conf


def test_secrets_fill_in_the_options_that_name_them():
    conf = render(BY_NAME["redis-forward"]).conf
    assert 'redis.password_file = "/etc/leasehold/secrets/redis-password"' in conf
    assert 'peer_secret_file = "/etc/leasehold/secrets/peer-secret"' in conf
    assert 'token_file = "/etc/leasehold/admin-token"' in conf
    assert not render(BY_NAME["redis-forward"]).all("Secret")


def test_the_admin_token_is_random_and_prometheus_reads_it():
    tokens = {json.dumps(render(MINIMAL, sets=(put("pod.labels.n", str(n)),)).one("Secret")["data"])
              for n in range(3)}
    assert len(tokens) == 3
    monitored = render(MINIMAL, sets=(put("podMonitor.enabled", True),))
    endpoint = monitored.one("PodMonitor")["spec"]["podMetricsEndpoints"][0]
    credentials = endpoint["authorization"]["credentials"]
    assert credentials["name"] == monitored.one("Secret")["metadata"]["name"]
    assert credentials["key"] in monitored.one("Secret")["data"]
    assert endpoint["port"] in [port.get("name") for port in monitored.sidecar["ports"]]


def test_only_own_pods_speak_at_the_peer_port():
    rules = render(BY_NAME["redis-forward"]).one("NetworkPolicy")["spec"]["ingress"]
    by_port = {port["port"]: rule.get("from") for rule in rules for port in rule["ports"]}
    assert set(by_port) == {8080, 8081, 9090}    # the application's own port is not among them
    assert by_port[8080] is None
    assert by_port[8081] == [{"podSelector": {"matchLabels": {
        "app.kubernetes.io/name": "leasehold", "app.kubernetes.io/instance": "r"}}}]
    assert "namespaceSelector" in by_port[9090][0]


def test_clients_are_kept_from_outbound_gates():
    rendered = render(BY_NAME["two-leases"])
    ports = rendered.services()[0]["spec"]["ports"]
    assert {port["name"]: (port["port"], port["targetPort"]) for port in ports} == {
        "scheduler": (80, 8080), "reports": (81, 9080)}


def test_the_notes_warn_of_what_a_user_would_stumble_over():
    def notes(*sets):
        arguments = [word for each in sets for word in ("--set-json", each)]
        done = helm("install", "r", CHART, "--dry-run=client", "-f", MINIMAL, *arguments)
        return done.stdout.partition("NOTES:")[2]
    assert "anybody in the cluster may speak at the peer port" in notes()
    assert "anybody" not in notes(put("secrets.peerSecret.secretName", "s"))
    assert "does not forward" in notes(gate())
    assert "does not forward" not in notes()
    assert "may be reached past the gate" in notes(gate(upstream="10.1.2.3:80"))
    assert "no standby" in notes(put("workload.replicas", 1))


def test_defaults_alone_pass_the_linter():
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART).stdout


def test_the_chart_can_be_packaged(tmp_path):
    helm("package", CHART, "-d", tmp_path)
    package, = tmp_path.glob("leasehold-*.tgz")
    rendered = helm("template", "r", package, "-f", MINIMAL).stdout
    assert "sidecar.conf" in rendered
