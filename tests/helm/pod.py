"""A pod of the rendered chart, played on this machine: the container's own command, environment, files,
probes and preStop, taken from the manifest.

What is not as in a cluster: a path of a volume is a directory of the test (replaced in the texts), the
pod's address is one of 127/8, and the ports are the test's. The admin API so is on loopback.
"""

import http.client
import os
import re
import subprocess
import time

from harness import sanitizer
from harness.process import Process
from harness.sidecar import binary
from harness.wait import wait_for


class Pod:
    """rendered: Rendered; name, ip: the downward API's; env: what `sidecar.env` would bring."""

    def __init__(self, rendered, directory, name, ip, env):
        self.container = rendered.sidecar
        self.name = name
        self.ip = ip
        self.directory = directory
        bin_folder = directory / "bin"
        bin_folder.mkdir(parents=True)
        (bin_folder / "leasehold").symlink_to(binary())
        given = {"metadata.name": name, "metadata.namespace": "prod", "status.podIP": ip}
        own = {each["name"]: given[each["valueFrom"]["fieldRef"]["fieldPath"]]
               for each in self.container["env"] if "valueFrom" in each}
        self.env = {"PATH": f"{bin_folder}:{os.environ['PATH']}", **sanitizer.passed_on(), **own, **env}
        self.roots = {}
        for mount in self.container["volumeMounts"]:
            place = directory / mount["name"]
            self.roots[mount["mountPath"]] = place / mount.get("subPath", "")
            place.mkdir()
        self._write("/etc/leasehold/sidecar.conf", self._here(rendered.conf))
        self._write("/etc/leasehold/admin-token", "a-token-of-the-test\n")
        self.log_path = directory / "log"
        self._process = None

    def _write(self, path, text):
        self.roots[path].write_text(text)

    def _here(self, text):
        for path in sorted(self.roots, key=len, reverse=True):
            text = text.replace(path, str(self.roots[path]).rstrip("/"))
        return text

    def _command(self, words):
        return [self._here(word) for word in words]

    def start(self):
        """As the kubelet does: the command, then the startup probe until it is well."""
        self._process = Process(["env", "-i", *(f"{k}={v}" for k, v in self.env.items()),
                                 *self._command(self.container["command"])], self.log_path)
        wait_for(lambda: self.probe("startupProbe"), 10, self.log)
        return self

    def probe(self, which):
        """What the kubelet would make of it: an httpGet from outside, with the pod's address as Host
        and no token; any 2xx or 3xx is well."""
        get = self.container[which]["httpGet"]
        return 200 <= self.get(get["path"], get["port"]).status < 400

    def get(self, path, port):
        number = next(each["containerPort"] for each in self.container["ports"]
                      if each.get("name") == port)
        connection = http.client.HTTPConnection(self.ip, number, timeout=5)
        try:
            connection.request("GET", path, headers={"User-Agent": "kube-probe/1.33"})
            answer = connection.getresponse()
            answer.text = answer.read().decode()
            return answer
        except OSError:
            return _Nothing()
        finally:
            connection.close()

    def pre_stop(self):
        """(exit code, seconds, what it said); bounded by nothing but its own time-out."""
        command = self._command(self.container["lifecycle"]["preStop"]["exec"]["command"])
        began = time.monotonic()
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False,
                              timeout=120, stdin=subprocess.DEVNULL)
        return done.returncode, time.monotonic() - began, done.stdout + done.stderr

    def leader(self):
        return self.get("/leaderz", "admin").status == 200

    def terminate(self, seconds):
        """SIGTERM; the exit code."""
        return self._process.terminate(seconds)

    def log(self):
        return self.log_path.read_text(errors="replace")[-4000:]

    def token(self):
        """The fencing token of the last term that this pod had."""
        terms = re.findall(r'"event":"lease.acquired".*?"token":"(\d+)"', self.log_path.read_text())
        return int(terms[-1]) if terms else 0

    def close(self):
        if self._process is not None:
            self._process.close()


class _Nothing:
    status = 0
    text = ""
