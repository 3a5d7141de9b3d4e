"""local-aws-sqs, an SQS that runs here in node, started and ended by its test. It checks no signature."""

import pathlib
import re

from . import aws_request
from .aws_tools import TOOLS, tool
from .process import Process
from .wait import wait_for

ACCOUNT = "123456789012"   # its default
SCRIPT = pathlib.Path(__file__).with_suffix(".js")


class LocalSqs:
    # It counts receives twice, purges when it likes, and its XML is not escaped.
    exact = False
    environment = aws_request.ENVIRONMENT

    def __init__(self, directory, queues=("orders",)):
        directory.mkdir(parents=True, exist_ok=True)
        self._process = Process([tool("node"), SCRIPT, TOOLS / "node_modules", *queues],
                                directory / "local_sqs.log")
        said = wait_for(lambda: re.search(r"listening (\d+)", self._process.output()) or
                        not self._process.running(), 15, "local-aws-sqs listens")
        assert said is not True, "local-aws-sqs ended at start: " + self._process.output()
        self.port = int(said.group(1))

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def queue_url(self, name="orders"):
        return f"{self.url}/{ACCOUNT}/{name}"

    def call(self, operation, parameters, queue="orders"):
        got = aws_request.sqs(self.address, operation, {"QueueUrl": self.queue_url(queue), **parameters})
        assert got.status == 200, got
        return got.json() if got.body else {}

    def send(self, *bodies, queue="orders", **parameters):
        for body in bodies:
            self.call("SendMessage", {"MessageBody": body, **parameters}, queue)

    def close(self):
        self._process.close()
