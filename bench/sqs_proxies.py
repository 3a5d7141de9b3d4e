"""What stands before SQS: the gate, Envoy and aws-sigv4-proxy, which sign with the bench's key, and
HAProxy, which does not. One worker each, connections kept alive on both sides, no access log. And
the SQS behind them (sqs_upstream.h says what it is)."""

import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

from processes import Failure, Process
from proxies import HAPROXY, LEASEHOLD, find

ROOT = pathlib.Path(__file__).resolve().parents[1]
KEY_ID, SECRET, REGION = "BENCHKEY", "bench-secret", "us-east-1"

# No files and no metadata service: the chain ends at the environment for all.
ENVIRONMENT = ["env", f"AWS_ACCESS_KEY_ID={KEY_ID}", f"AWS_SECRET_ACCESS_KEY={SECRET}",
               "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null",
               "AWS_SHARED_CREDENTIALS_FILE=/dev/null"]

LEASEHOLD_SQS = LEASEHOLD.replace(
    'type = "http"', f'type = "sqs"\nregion = "{REGION}"').replace(
    'upstream = "', 'upstream = "http://')

ENVOY = """\
static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: sqs
          route_config:
            virtual_hosts:
            - {{name: sqs, domains: ["*"], routes: [{{match: {{prefix: "/"}}, route: {{cluster: sqs}}}}]}}
          http_filters:
          - name: envoy.filters.http.aws_request_signing
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigning
              service_name: sqs
              region: REGION
              host_rewrite: 127.0.0.1:{upstream}
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
  clusters:
  - name: sqs
    connect_timeout: 2s
    load_assignment:
      cluster_name: sqs
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {upstream}}}}}}}}}]}}]
""".replace("REGION", REGION)

# It is told by flags; the file is only where _command finds the two ports.
SIGV4_PROXY = "{port} {upstream}\n"

TEXTS = {"leasehold": LEASEHOLD_SQS, "envoy": ENVOY, "aws-sigv4-proxy": SIGV4_PROXY,
         "haproxy": HAPROXY}
SIGNING = ("leasehold", "envoy", "aws-sigv4-proxy")


def names():
    """Those that are here; aws-sigv4-proxy is no package, and is taken where PATH has it."""
    return [name for name in TEXTS
            if name != "aws-sigv4-proxy" or shutil.which(name) is not None]


def envoy_path():
    path = os.environ.get("ENVOY") or ROOT / "build" / "tools" / "envoy"
    if not os.access(path, os.X_OK):
        raise Failure(f"{path} is not there or cannot be run; `.ci/deps bench` fetches it, "
                      "ENVOY=/path names another")
    return path


def _sigv4_proxy(config):
    port, upstream = config.read_text().split()
    return ["GOMAXPROCS=1", shutil.which("aws-sigv4-proxy"), "--port", f":{port}", "--name", "sqs",
            "--region", REGION, "--host", f"127.0.0.1:{upstream}", "--upstream-url-scheme", "http"]


def command(name, binary, _home, config):
    return ENVIRONMENT + {
        "leasehold": lambda: [binary, "run", "-c", config],
        "envoy": lambda: [envoy_path(), "--concurrency", "1", "--disable-hot-restart", "-l", "error",
                          "--config-yaml", config.read_text()],
        "aws-sigv4-proxy": lambda: _sigv4_proxy(config),
        "haproxy": lambda: [find("haproxy"), "-db", "-f", config]}[name]()


def envoy_version():
    out = subprocess.run([envoy_path(), "--version"], capture_output=True, text=True, timeout=10,
                         check=False)
    found = re.search(r"/(\d+\.\d+\.\d+)/", out.stdout)
    return found.group(1) if found else "unknown"


def first_send(process, port, seconds=10.0):
    """Seconds from the start of `process` to its first SendMessage that was taken."""
    body = json.dumps({"QueueUrl": f"http://127.0.0.1:{port}/000000000000/bench",
                       "MessageBody": "first"})
    headers = {"Content-Type": "application/x-amz-json-1.0",
               "X-Amz-Target": "AmazonSQS.SendMessage", "Connection": "close"}
    said = "nothing"
    while time.monotonic() - process.started_at < seconds and process.running():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        try:
            connection.request("POST", "/", body, headers)
            answer = connection.getresponse()
            said = f"{answer.status} {answer.read()[:300]!r}"
            if answer.status == 200:
                return time.monotonic() - process.started_at
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(0.0005)
    raise Failure(f"{process.log.parent.name} takes no message (its last answer: {said}):\n"
                  + process.log.read_text(errors="replace")[-2000:])


class SqsUpstream:
    """.open: the port where anybody may ask; .signed: where requests must be signed."""

    def __init__(self, directory, program, cpus):
        self.process = Process([program, KEY_ID, SECRET], directory / "sqs_upstream.log", cpus)
        said = ""
        while self.process.running() and "signed" not in said:
            time.sleep(0.005)
            said = self.process.log.read_text()
        ports = dict(re.findall(r"^(open|signed) (\d+)$", said, re.M))
        if len(ports) != 2:
            raise Failure(f"{program} does not serve:\n{said}")
        self.open, self.signed = int(ports["open"]), int(ports["signed"])

    def counts(self):
        """{"SendMessage": n, ..., "SignaturesChecked": n}, since its start."""
        connection = http.client.HTTPConnection("127.0.0.1", self.open, timeout=5)
        try:
            connection.request("GET", "/counts", headers={"Connection": "close"})
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException) as error:
            raise Failure(f"the SQS behind the proxies does not tell its counts: {error}") from error
        finally:
            connection.close()
