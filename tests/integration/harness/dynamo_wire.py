"""The sidecar's DynamoDB adapter on the wire (src/store/dynamodb_*.cc): what each call means for a
lease."""

import re

from . import aws_request
from .http_messages import HttpParser, answer

TABLE = "leasehold"
NUMBERS = {"format", "ttl_ms", "acquired_at_unix_ms"}   # all else is a string, tokens and beats too
SET = re.compile(r"(#\w+) = (:\w+)")


def record_of(item):
    """An item's attributes as redis' adapter names them: {"token": {"S": "1"}} -> {"token": "1"}."""
    record = {}
    for name, value in item.items():
        kind, content = next(iter(value.items()))
        if name == "peers":
            record.update({f"peer:{gate}": address["S"] for gate, address in content.items()})
        elif kind in ("S", "N"):
            record[name] = content
    return record


def item_of(record):
    """The other way."""
    item = {name: {"N" if name in NUMBERS else "S": str(value)} for name, value in record.items()
            if not name.startswith("peer:")}
    peers = {name.partition(":")[2]: {"S": address} for name, address in record.items()
             if name.startswith("peer:")}
    return {**item, **({"peers": {"M": peers}} if peers else {})}


class DynamoCommand:
    """One request, with the names that LeaseCommand has for redis'."""

    def __init__(self, message):
        self.message = message
        self.name = message.headers.get("x-amz-target", "").rpartition(".")[2]
        self.body = message.json()
        self.words = [self.name, message.body]
        self.is_read = self.name == "GetItem"
        self.is_write = self.name == "UpdateItem" and "UpdateExpression" in self.body
        self.is_probe = self.name == "UpdateItem" and not self.is_write
        self.record = self._record() if self.is_write else {}
        self.expected_version = self._expected_version() if self.is_write else ""

    def _record(self):
        names = self.body.get("ExpressionAttributeNames", {})
        values = self.body.get("ExpressionAttributeValues", {})
        return record_of({names[name]: values[value] for name, value in
                          SET.findall(self.body["UpdateExpression"])})

    def _expected_version(self):
        values = self.body.get("ExpressionAttributeValues", {})
        was = [values.get(f":was_{name}", {}).get("S") for name in ("process_id", "token", "beat")]
        return "" if None in was else "/".join(was)

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
    pushes = False
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
