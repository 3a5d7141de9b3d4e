"""The chart, rendered by the real helm, and what a test asks of the manifests.

helm is build/tools/helm (`.ci/deps helm` puts it there), or what HELM names.
"""

import functools
import os
import pathlib
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "leasehold"
TOOLS = ROOT / "build" / "tools"
RELEASE, NAMESPACE = "r", "prod"
# The last patch of the oldest version the chart takes; before and after native sidecars (1.29) and
# sleeping preStop hooks (1.30); the newest that both helm and the schemas know well.
VERSIONS = ("1.25.16", "1.27.16", "1.31.4", "1.33.1")
EXAMPLES = sorted((ROOT / "helm" / "examples").glob("*.yaml"))
VALUES = EXAMPLES + sorted((ROOT / "tests" / "helm" / "values").glob("*.yaml"))
# What a variable of `config` may stand for in these files.
ENVIRONMENT = {"POD_NAME": "r-leasehold-0", "POD_NAMESPACE": NAMESPACE, "POD_IP": "10.0.0.7",
               "HELD": "77", "REDIS_PASSWORD": "hunter2"}


def helm_binary():
    return os.environ.get("HELM") or str(TOOLS / "helm")


def helm(*arguments, check=True):
    """CompletedProcess, as text. Nothing of the user's own helm is read or written."""
    home = str(ROOT / "build" / "tools" / "helm-home")
    done = subprocess.run([helm_binary(), *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=60, stdin=subprocess.DEVNULL,
                          env={"PATH": os.environ["PATH"], "HOME": home})
    if check and done.returncode != 0:
        raise AssertionError(f"helm {' '.join(map(str, arguments))}:\n{done.stderr}")
    return done


@functools.lru_cache(maxsize=None)
def render(values=None, version="1.33.1", sets=()):
    """Rendered, from a file of values and more `--set-json` ones."""
    arguments = ["template", RELEASE, CHART, "--namespace", NAMESPACE, "--kube-version", version]
    if values is not None:
        arguments += ["-f", values]
    for each in sets:
        arguments += ["--set-json", each]
    return Rendered(helm(*arguments).stdout, version)


def refusal(values, *sets, version="1.33.1"):
    """What helm says where it must not render."""
    arguments = ["template", RELEASE, CHART, "--kube-version", version, "-f", values]
    for each in sets:
        arguments += ["--set-json", each]
    done = helm(*arguments, check=False)
    assert done.returncode != 0, "rendered what it should have refused:\n" + done.stdout
    return done.stderr


class Rendered:
    def __init__(self, text, version):
        self.version = tuple(int(part) for part in version.split(".")[:2])
        self.docs = [doc for doc in yaml.safe_load_all(text) if doc]

    def all(self, kind):
        return [doc for doc in self.docs if doc["kind"] == kind]

    def one(self, kind):
        found = self.all(kind)
        assert len(found) == 1, f"{len(found)} documents of kind {kind}, not one"
        return found[0]

    @property
    def workload(self):
        found = self.all("Deployment") + self.all("StatefulSet")
        assert len(found) == 1
        return found[0]

    @property
    def template(self):
        return self.workload["spec"]["template"]

    @property
    def pod(self):
        return self.template["spec"]

    @property
    def sidecar(self):
        containers = self.pod.get("initContainers", []) + self.pod["containers"]
        return next(each for each in containers if each["name"] == "leasehold")

    @property
    def native(self):
        return any(each["name"] == "leasehold" for each in self.pod.get("initContainers", []))

    @property
    def application(self):
        names = [each for each in self.pod["containers"] if each["name"] != "leasehold"]
        return names[0]

    @property
    def conf(self):
        return self.one("ConfigMap")["data"]["sidecar.conf"]

    @property
    def grace_period(self):
        return self.pod["terminationGracePeriodSeconds"]

    def services(self):
        """The one for clients, without the one that a StatefulSet asks for."""
        return [each for each in self.all("Service") if each["spec"].get("clusterIP") != "None"]
