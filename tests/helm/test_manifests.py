"""Every example and every file of values, for each Kubernetes version: what must be true of whatever
the chart renders."""

import os
import re
import subprocess

import pytest

import kube_schema
from chart import ENVIRONMENT, VALUES, VERSIONS, CHART, helm, render
from harness.sanitizer import passed_on
from harness.sidecar import binary

CASES = [pytest.param((values, version), id=f"{values.stem}-{version}")
         for values in VALUES for version in VERSIONS]


@pytest.fixture(params=CASES)
def case(request):
    return request.param


@pytest.fixture
def rendered(case):
    return render(*case)


def check(conf, directory, **environment):
    """`leasehold check` of a rendered sidecar.conf, in a pod's environment."""
    path = directory / "sidecar.conf"
    path.write_text(conf)
    return subprocess.run([binary(), "check", "-c", path], capture_output=True, text=True,
                          check=False, timeout=30,
                          env={"PATH": os.environ["PATH"], **passed_on(), **ENVIRONMENT, **environment})


def seconds(text):
    number, unit = re.fullmatch(r"([0-9.]+)(ms|s|m|h)", text).groups()
    return float(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


def containers(rendered):
    return rendered.pod.get("initContainers", []) + rendered.pod["containers"]


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_lint_finds_nothing(values):
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART, "-f", values).stdout


def test_the_api_server_takes_every_manifest(case):
    values, version = case
    for document in render(values, version).docs:
        if not document["apiVersion"].startswith("monitoring.coreos.com/"):
            assert kube_schema.problems(document, version) == []


def test_the_program_takes_the_sidecar_conf(rendered, case, tmp_path):
    ip = "fd00::7" if case[0].stem == "ipv6" else ENVIRONMENT["POD_IP"]
    done = check(rendered.conf, tmp_path, POD_IP=ip)
    assert done.returncode == 0, done.stderr + rendered.conf
    # Files of secrets and hooks, and the directory of the audit, are in the pod only. Without a peer secret it warns, as the notes do.
    # Nothing else may be risky in an example.
    expected = "No such file|no such file here|no directory /var/lib/leasehold/ here" + ("" if "peer_secret_file" in rendered.conf
                                                   else "|give peer_secret_file")
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning:")]
    assert [line for line in warnings if not re.search(expected, line)] == []


def test_the_sidecar_is_native_where_kubernetes_can(rendered, case):
    forced = case[0].stem == "old-kubernetes"
    assert rendered.native == (rendered.version >= (1, 29) and not forced)
    if rendered.native:
        assert rendered.sidecar["restartPolicy"] == "Always"
        assert rendered.pod["initContainers"][-1]["name"] == "leasehold"
    else:
        assert "restartPolicy" not in rendered.sidecar
        assert rendered.pod["containers"][0]["name"] == "leasehold"
    for other in containers(rendered):
        if other["name"] != "leasehold":
            assert "restartPolicy" not in other


def test_probes_ask_what_must_not_wait_for_leadership(rendered):
    ports = {port.get("name"): port["containerPort"] for port in rendered.sidecar["ports"]}
    paths = {probe: rendered.sidecar[probe]["httpGet"]
             for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe: get["path"] for probe, get in paths.items()} == {
        # Not /readyz at the start: the application begins only when a native sidecar has started.
        "startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    assert rendered.sidecar["livenessProbe"].get("terminationGracePeriodSeconds", 0) in (0, 10)
    for get in paths.values():
        assert f'"0.0.0.0:{ports[get["port"]]}"' in rendered.conf or \
            f'"[::]:{ports[get["port"]]}"' in rendered.conf


def test_pre_stop_steps_every_lease_down(rendered):
    command = rendered.sidecar["lifecycle"]["preStop"]["exec"]["command"]
    leases = re.findall(r'\[\[lease\]\]\nname = "(.*)"', rendered.conf)
    assert leases and command[-len(leases):] == leases
    assert "--wait --no-take-back --yes" in command[2]
    assert command[5] == f"{rendered.grace_period}s"


def test_the_application_outlives_the_drain(rendered, case, tmp_path):
    """Both preStop hooks begin at once, so the application's must take as long as the drain may."""
    hook = rendered.application.get("lifecycle", {}).get("preStop")
    if case[0].stem == "everything":    # asked for none
        assert hook is None
        return
    if case[0].stem == "old-kubernetes":    # has its own
        assert hook == {"exec": {"command": ["/bin/orders", "quiesce", "--for", "25s"]}}
        return
    if rendered.version >= (1, 30):
        delay = hook["sleep"]["seconds"]
    else:
        assert hook["exec"]["command"][0] == "sleep"
        delay = int(hook["exec"]["command"][1])
    assert delay > max(_derived(rendered, tmp_path, "step_down_grace"))


def _derived(rendered, tmp_path, name):
    printed = check(rendered.conf, tmp_path).stdout
    return [seconds(each) for each in re.findall(rf"^  {name} +(\S+)", printed, re.M)]


def test_the_grace_period_covers_what_the_leases_need(rendered, tmp_path):
    graces = _derived(rendered, tmp_path, "step_down_grace")
    hold_offs = _derived(rendered, tmp_path, "step_down_hold_off")
    assert graces and len(graces) == len(hold_offs)
    needed = max(grace + hold_off for grace, hold_off in zip(graces, hold_offs))
    if 'standby = "forward"' in rendered.conf:    # which may be of the quickest lease
        needed += min(max(grace, hold_off) for grace, hold_off in zip(graces, hold_offs))
    assert needed < rendered.grace_period < needed + 120


def test_every_port_of_the_sidecar_is_declared_and_served(rendered):
    declared = [port["containerPort"] for port in rendered.sidecar["ports"]]
    assert len(set(declared)) == len(declared)
    listens = re.findall(r'^(listen|peer_listen) = "(.*):(\d+)"', rendered.conf, re.M)
    open_ones = {int(port) for _, host, port in listens if host in ("0.0.0.0", "[::]")}
    assert set(declared) == open_ones
    peers = {int(port) for key, _, port in listens if key == "peer_listen"}
    for service in rendered.services():
        targets = {port["targetPort"] for port in service["spec"]["ports"]}
        assert targets <= set(declared) - peers, "clients have no business at a peer port"
    names = [port["name"] for port in rendered.sidecar["ports"] if "name" in port]
    assert len(set(names)) == len(names) and all(len(name) <= 15 for name in names)


def test_every_mount_has_its_volume(rendered):
    volumes = [each["name"] for each in rendered.pod["volumes"]]
    claims = [each["metadata"]["name"]
              for each in rendered.workload["spec"].get("volumeClaimTemplates", [])]
    assert len(set(volumes + claims)) == len(volumes + claims)
    mounted = set()
    for container in containers(rendered):
        paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
        assert len(set(paths)) == len(paths)
        mounted |= {mount["name"] for mount in container.get("volumeMounts", [])}
    assert mounted == set(volumes + claims)


def test_a_single_file_that_is_mounted_exists(rendered):
    """A subPath that no key provides would become an empty directory."""
    files = {"leasehold-config": set(rendered.one("ConfigMap")["data"])}
    for volume in rendered.pod["volumes"]:
        if "secret" in volume:
            files[volume["name"]] = {item["path"] for item in volume["secret"]["items"]}
    single = [mount for mount in rendered.sidecar["volumeMounts"] if "subPath" in mount]
    assert {mount["mountPath"] for mount in single} == {"/etc/leasehold/sidecar.conf",
                                                        "/etc/leasehold/admin-token"}
    for mount in single:
        assert mount["subPath"] in files[mount["name"]]


def test_every_file_that_sidecar_conf_names_is_mounted(rendered):
    mounts = [mount["mountPath"] for mount in rendered.sidecar["volumeMounts"]]
    named = re.findall(r'^\S*(?:_file|dir|socket|file) = "(/.*)"', rendered.conf, re.M)
    for path in named:
        assert any(path == mount or path.startswith(mount + "/") for mount in mounts), path
    projected = [each for each in rendered.pod["volumes"] if each["name"] == "leasehold-secrets"]
    given = {f"/etc/leasehold/secrets/{item['path']}" for volume in projected
             for source in volume["projected"]["sources"] for item in source["secret"]["items"]}
    assert {path for path in named if path.startswith("/etc/leasehold/secrets/")} <= given


def test_what_the_chart_names_it_also_makes(rendered):
    made = {(doc["kind"], doc["metadata"]["name"]) for doc in rendered.docs}
    volumes = {each["name"]: each for each in rendered.pod["volumes"]}
    assert ("ConfigMap", volumes["leasehold-config"]["configMap"]["name"]) in made
    token = volumes["leasehold-admin-token"]["secret"]
    if rendered.all("Secret"):
        assert ("Secret", token["secretName"]) in made
        assert token["items"][0]["key"] in rendered.one("Secret")["data"]
    if rendered.all("ServiceAccount"):
        assert ("ServiceAccount", rendered.pod["serviceAccountName"]) in made
    if rendered.workload["kind"] == "StatefulSet":
        assert ("Service", rendered.workload["spec"]["serviceName"]) in made


def test_selectors_find_the_pods(rendered):
    labels = rendered.template["metadata"]["labels"].items()
    assert rendered.workload["spec"]["selector"]["matchLabels"].items() <= labels
    for service in rendered.all("Service"):
        assert service["spec"]["selector"].items() <= labels
    for kind, field in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector"),
                        ("PodMonitor", "selector")):
        for document in rendered.all(kind):
            assert document["spec"][field]["matchLabels"].items() <= labels


def test_the_config_map_holds_no_secret(rendered):
    for line in rendered.conf.splitlines():
        key, _, value = line.partition(" = ")
        if re.search(r"(password|secret|token)$", key):
            assert value.startswith('"${'), line
        assert not re.search(r"://[^/@\"]*:[^$/@\"][^/@\"]*@", value), line


def test_the_sidecar_needs_no_privilege(rendered):
    context = rendered.sidecar["securityContext"]
    assert context["runAsNonRoot"] and context["runAsUser"] > 0
    assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "limits" in rendered.sidecar["resources"]
    # Throttled, it would renew late.
    assert "cpu" not in rendered.sidecar["resources"]["limits"]


def test_the_application_reaches_the_signal_socket(rendered):
    shared = {mount["mountPath"]: mount["name"] for mount in rendered.application["volumeMounts"]}
    own = {mount["mountPath"]: mount["name"] for mount in rendered.sidecar["volumeMounts"]}
    assert shared["/run/leasehold"] == own["/run/leasehold"]
    # The socket has the sidecar's group and the mode 0660.
    group = rendered.sidecar["securityContext"]["runAsGroup"]
    assert group in rendered.pod["securityContext"]["supplementalGroups"]


def test_the_applications_volumes_keep_their_owner_and_mode(rendered):
    """A database refuses a data directory that the group may write to."""
    assert "fsGroup" not in rendered.pod["securityContext"]


def test_only_the_sidecar_has_the_secrets(rendered):
    """They are readable for every user there."""
    ours = {"leasehold-admin-token", "leasehold-secrets", "leasehold-config", "leasehold-state"}
    for container in containers(rendered):
        if container["name"] != "leasehold":
            assert not ours & {mount["name"] for mount in container.get("volumeMounts", [])}


def test_the_state_dir_does_not_travel(rendered):
    """A lock proves a death on one machine only; see helm/README.md."""
    volumes = {each["name"]: each for each in rendered.pod["volumes"]}
    assert volumes["leasehold-state"] == {"name": "leasehold-state", "emptyDir": {}}
    assert 'state_dir = "/var/lib/leasehold' in rendered.conf
