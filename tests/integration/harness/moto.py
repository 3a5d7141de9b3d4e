"""moto's server: many AWS services at once, in memory, started and ended by its test. With `checking`
it verifies the signature of every request against a user's key that was made first."""

import re
import xml.etree.ElementTree as ElementTree

from . import aws_request
from .aws_tools import tool
from .process import Process
from .wait import wait_for

ACCOUNT = "123456789012"
IAM_VERSION = "2010-05-08"
ALL_ALLOWED = ('{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}')
# CreateUser, PutUserPolicy, CreateAccessKey are let in unsigned-for; whatever comes after is checked.
SETUP_CALLS = 3


class Moto:
    exact = True

    def __init__(self, directory, queues=("orders",), checking=False, policy=ALL_ALLOWED):
        directory.mkdir(parents=True, exist_ok=True)
        environment = {"INITIAL_NO_AUTH_ACTION_COUNT": str(SETUP_CALLS)} if checking else {}
        self._process = Process([tool("moto_server"), "-H", "127.0.0.1", "-p", "0"],
                                directory / "moto.log", env=environment)
        said = wait_for(lambda: re.search(r"Running on http://127.0.0.1:(\d+)", self._process.output()) or
                        not self._process.running(), 20, "moto listens")
        assert said is not True, "moto ended at start: " + self._process.output()
        self.port = int(said.group(1))
        self.key, self.secret = self._make_user(policy) if checking else \
            (aws_request.KEY, aws_request.SECRET)
        for name in queues:
            fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true"} if name.endswith(".fifo") else {}
            self.call("CreateQueue", {"QueueName": name, "Attributes": fifo})

    def _iam(self, operation, **parameters):
        got = aws_request.query(self.address, "iam", operation, parameters, IAM_VERSION)
        assert got.status == 200, got
        return {each.tag.rpartition("}")[2]: each.text for each in ElementTree.fromstring(got.body).iter()}

    def _make_user(self, policy):
        self._iam("CreateUser", UserName="sidecar")
        self._iam("PutUserPolicy", UserName="sidecar", PolicyName="p", PolicyDocument=policy)
        made = self._iam("CreateAccessKey", UserName="sidecar")
        return made["AccessKeyId"], made["SecretAccessKey"]

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self):
        """Of the one that may."""
        return aws_request.environment(self.key, self.secret)

    def queue_url(self, name="orders"):
        return f"{self.url}/{ACCOUNT}/{name}"

    def call(self, operation, parameters, queue=None):
        if queue is not None:
            parameters = {"QueueUrl": self.queue_url(queue), **parameters}
        got = aws_request.sqs(self.address, operation, parameters, key=self.key, secret=self.secret)
        assert got.status == 200, got
        return got.json() if got.body else {}

    def send(self, *bodies, queue="orders", **parameters):
        for body in bodies:
            self.call("SendMessage", {"MessageBody": body, **parameters}, queue)

    def close(self):
        self._process.close()
