"""Unmodified clients of SQS, each in a process of its own: the JavaScript SDK, boto3 of today and of the
Query protocol, awscli, and requests of our own in either protocol. All take call(operation,
parameters), with SQS' own names, and bytes as bytes."""

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

from . import aws_request
from .aws_tools import TOOLS, tool
from .process import Process
from .wait import wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
# What an application behind a sidecar has: it signs for localhost, with whatever credentials.
APPLICATION = aws_request.environment("AKIDAPPLICATION", "no-secret-that-the-service-knows")


class SqsAnswer:
    """`code` is "" where it went well."""

    def __init__(self, result=None, code="", message="", status=None, attempts=1, name=""):
        self.result = result or {}
        self.code, self.message, self.status, self.attempts, self.name = code, message, status, attempts, name

    @property
    def ok(self):
        return not self.code

    def __getitem__(self, key):
        assert self.ok, self
        return self.result[key]

    def get(self, key, default=None):
        assert self.ok, self
        return self.result.get(key, default)

    def __repr__(self):
        return f"<{self.status} {self.code} {self.message} {str(self.result)[:200]} attempts {self.attempts}>"


def _default(value):
    return {"base64": base64.b64encode(value).decode()}


def _revive(value):
    return base64.b64decode(value["base64"]) if set(value) == {"base64"} else value


class _Driven:
    """A process that answers each line with a line."""

    def __init__(self, argv, env):
        self._errors = tempfile.TemporaryFile()
        self._popen = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *map(str, argv)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._errors, text=True, env={**os.environ, **env})

    def call(self, operation, parameters=None):
        asked = json.dumps({"operation": operation, "parameters": parameters or {}}, default=_default)
        self._popen.stdin.write(asked + "\n")
        self._popen.stdin.flush()
        line = self._popen.stdout.readline()
        assert line, f"the client ended: {self._tail()}"
        return SqsAnswer(**json.loads(line, object_hook=_revive))

    def _tail(self):
        self._popen.wait(10)
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-2000:]

    def close(self):
        self._popen.kill()
        self._popen.wait(10)
        self._popen.stdin.close()
        self._popen.stdout.close()
        self._errors.close()


class NodeSdk(_Driven):
    """@aws-sdk/client-sqs. `endpoint_in`: "code", or "environment", which it leaves for the host of a
    QueueUrl."""

    name = "sdk_js"
    is_json = True

    def __init__(self, url, env=None, endpoint_in="code", **options):
        env = {**APPLICATION, **(env or {})}
        if endpoint_in == "environment":
            env["AWS_ENDPOINT_URL_SQS"] = url
        else:
            options["endpoint"] = url
        super().__init__([tool("node"), os.path.join(HERE, "node_sqs.js"), TOOLS / "node_modules",
                          json.dumps(options)], env)


class Boto(_Driven):
    name = "boto3"
    is_json = True
    packages = "python"

    def __init__(self, url, env=None, **options):
        super().__init__([sys.executable, os.path.join(HERE, "boto_sqs.py"),
                          json.dumps({"endpoint_url": url, **options})],
                         {**APPLICATION, **(env or {}), "PYTHONPATH": str(TOOLS / self.packages),
                          "PYTHONSAFEPATH": "1"})


class BotoQuery(Boto):
    """The last boto3 that speaks the Query protocol."""

    name = "boto3_query"
    is_json = False
    packages = "python-query"


class AwsCli:
    """A process each call."""

    name = "awscli"
    is_json = True

    def __init__(self, url, env=None):
        self._url = url
        self._env = {**os.environ, **APPLICATION, **(env or {})}

    def call(self, operation, parameters=None):
        words = re.sub(r"(?<!^)(?=[A-Z])", "-", operation).lower()
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:   # a command line holds no MiB
            json.dump(parameters or {}, file, default=lambda value: value.decode("ascii"))  # awscli 1: as they are
            file.flush()
            done = subprocess.run([tool("aws"), "--endpoint-url", self._url, "sqs", words, "--cli-input-json",
                                   f"file://{file.name}"], env=self._env, capture_output=True, text=True,
                                  timeout=60, check=False)
        if done.returncode == 0:
            return SqsAnswer(json.loads(done.stdout or "{}"))
        said = re.search(r"An error occurred \((\S+)\)", done.stderr)
        return SqsAnswer(code=said.group(1) if said else "Failed", message=done.stderr.strip())

    def close(self):
        pass


class RawSqs:
    """Requests of our own, one attempt each; `is_json` says in which protocol."""

    def __init__(self, address, is_json):
        self.address = address
        self.is_json = is_json
        self.name = "raw_json" if is_json else "raw_query"

    def send(self, operation, parameters=None, timeout=40):
        """The answer as it came: an AwsAnswer."""
        how = aws_request.sqs if self.is_json else \
            (lambda address, *rest, **more: aws_request.query(address, "sqs", *rest, **more))
        return how(self.address, operation, parameters or {}, timeout=timeout, key="AKIDAPPLICATION",
                   secret="no-secret-that-the-service-knows")

    def call(self, operation, parameters=None):
        return read(self.send(operation, parameters), self.is_json)


def read(answer, is_json):
    """An AwsAnswer as an SqsAnswer; of the Query protocol only what errors and texts say."""
    if is_json:
        body = json.loads(answer.body) if answer.body else {}
        if answer.status == 200:
            return SqsAnswer(body, status=200)
        return SqsAnswer(code=body["__type"].rpartition("#")[2], message=body.get("message", ""),
                         status=answer.status)
    leaves = {}
    for each in ElementTree.fromstring(answer.body).iter():
        if not len(each):
            leaves.setdefault(each.tag.rpartition("}")[2], each.text or "")
    if answer.status == 200:
        return SqsAnswer(leaves, status=200)
    return SqsAnswer(code=leaves["Code"], message=leaves.get("Message", ""), status=answer.status)


class Consumer:
    """An unmodified sqs-consumer (node_consumer.js)."""

    def __init__(self, directory, name, queue_url, handle_ms=0, env=None, **options):
        self.name = name
        self._log = directory / f"consumer-{name}.log"
        self._process = Process(
            [tool("node"), os.path.join(HERE, "node_consumer.js"), TOOLS / "node_modules", queue_url,
             json.dumps({"handleMs": handle_ms, "consumer": options})], self._log,
            env={**APPLICATION, **(env or {})})
        wait_for(lambda: self.events("started") or not self._process.running(), 10, "the consumer starts")
        assert self._process.running(), self._process.output()

    @property
    def process(self):
        return self._process

    def events(self, event=None, since=0.0):
        """What it told: dicts, with `at` in seconds."""
        found = []
        for line in self._process.output().splitlines():
            if not line.startswith("{") or not line.endswith("}"):
                continue
            told = json.loads(line)
            told["at"] /= 1000
            if event in (None, told["event"]) and told["at"] >= int(since * 1000) / 1000:
                found.append(told)
        return found

    def wait_done(self, body, seconds, since=0.0):
        return wait_for(lambda: [e for e in self.events("done", since) if e["body"] == body], seconds,
                        lambda: f"{self.name} has processed {body}; it told {self.events()[-8:]}")[0]

    def kill9(self):
        self._process.kill9()
        return time.time()

    def close(self):
        self._process.close()
