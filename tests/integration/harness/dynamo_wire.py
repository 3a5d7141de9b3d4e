"""The sidecar's DynamoDB adapter on the wire (src/store/dynamodb_*.cc): what each call means for a
lease."""

import re

from . import aws_request
from .http_messages import HttpParser, answer

TABLE = "leasehold"
VERSION = re.compile(r"[0-9a-f]{32}/\d+/\d+")


def plain(value):
    """An attribute value as text: {"S": "x"} -> "x"; maps as dicts."""
    kind, content = next(iter(value.items()))
    return {k: plain(v) for k, v in content.items()} if kind == "M" else content


class DynamoCommand:
    """One request, with the names that LeaseCommand has for redis'."""

    def __init__(self, message):
        self.message = message
        self.name = message.headers.get("x-amz-target", "").rpartition(".")[2]
        self.body = message.json()
        self.words = [self.name, message.body]
        self.is_read = self.name == "GetItem"
        self.is_write = self.name == "PutItem" and "ConditionExpression" in self.body
        self.is_probe = False
        self.record = {k: plain(v) for k, v in self.body["Item"].items()} if self.is_write else {}
        self.expected_version = self._expected_version() if self.is_write else ""

    def _expected_version(self):
        values = [plain(v) for v in self.body.get("ExpressionAttributeValues", {}).values()]
        return next((v for v in values if isinstance(v, str) and VERSION.fullmatch(v)), "")

    @property
    def token(self):
        return int(self.record.get("token", 0))

    @property
    def process_id(self):
        return self.record.get("process_id", "")

    @property
    def state(self):
        return self.record.get("state", "")


class DynamoProtocol:
    """What a FaultProxy must know of DynamoDB."""

    environment = aws_request.ENVIRONMENT
    parser = HttpParser
    placeholder = None
    ends_in_order = True   # servers end kept connections
    unknown_answers = {
        "error": answer(500, b"<html>nobody knows this error</html>", [("Content-Type", "text/html")]),
        "other_kind": answer(400, {"__type": "com.example#WeirdException", "message": "unheard of"}),
        "nothing": answer(200, b"[]"),
    }

    @staticmethod
    def url(host, port):
        return f"http://{host}:{port}"

    @staticmethod
    def store_options(url):
        return {"type": "dynamodb", "dynamodb.endpoint": url, "dynamodb.region": aws_request.REGION,
                "dynamodb.table": TABLE}

    @staticmethod
    def command(value):
        return DynamoCommand(value)

    @staticmethod
    def is_subscription(_):
        return False
