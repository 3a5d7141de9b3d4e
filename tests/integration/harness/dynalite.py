"""dynalite, a DynamoDB that runs here, started and ended by its test. Sidecars reach it through a
proxy that writes down what it carried out, since it keeps no such log itself."""


from . import aws_request
from .aws_tools import tool
from .dynamo_wire import TABLE, DynamoProtocol, item_of, record_of
from .fault_proxy import FaultProxy
from .process import Process, free_port
from .wait import wait_for

START_ATTEMPTS = 5  # a port taken between bind 0 and the server's own bind


class Dynalite:
    """As Redis (redis.py): .url for sidecars, record(), write_record(), monitor(), freeze() ..."""

    protocol = DynamoProtocol()
    environment = protocol.environment

    def __init__(self, directory, persist=False):
        """`persist`: on disk, so that a restart forgets nothing."""
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self._options = ["--path", self.directory / "data"] if persist else []
        self._process = None
        self.server_port = 0
        for attempt in range(START_ATTEMPTS):
            self.server_port = free_port()
            if self._start(fail=attempt == START_ATTEMPTS - 1):
                break
        self._front = FaultProxy(self.server_port, self.protocol)

    def _start(self, fail=True):
        self._process = Process([tool("dynalite"), "--host", "127.0.0.1", "--port", self.server_port,
                                 "--createTableMs", "0", "--deleteTableMs", "0", *self._options],
                                self.directory / "dynalite.log")
        ended = lambda: not self._process.running()
        wait_for(lambda: ended() or self._answers(), 15, "dynalite answers ListTables")
        if ended() and fail:
            raise AssertionError("dynalite ended at start: " + self._process.output())
        if not ended():
            self.create_table()
        return not ended()

    def _answers(self):
        try:
            return self.call("ListTables", {}).status == 200
        except OSError:  # refused: not yet
            return False

    def create_table(self):
        made = self.call("CreateTable", {
            "TableName": TABLE, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]})
        assert made.status == 200 or b"ResourceInUseException" in made.body, made
        wait_for(lambda: self.call("DescribeTable", {"TableName": TABLE}).json()["Table"]
                 ["TableStatus"] == "ACTIVE", 5, "the table is there")

    # ---- what sidecars are told ----

    @property
    def port(self):
        """Where sidecars and fault proxies connect."""
        return self._front.port

    @property
    def url(self):
        return self._front.url

    def store_options(self):
        return self.protocol.store_options(self.url)

    # ---- the other hand in the store ----

    def call(self, operation, parameters, timeout=5):
        return aws_request.dynamodb(("127.0.0.1", self.server_port), operation, parameters,
                                    timeout=timeout)

    def item(self, name="app"):
        """The item as DynamoDB writes it, {} if there is none."""
        got = self.call("GetItem", {"TableName": TABLE, "ConsistentRead": True, "Key": self._key(name)})
        assert got.status == 200, got
        return got.json().get("Item", {})

    @staticmethod
    def _key(name):
        return {"pk": {"S": f"leasehold:lease:{name}"}}

    def record(self, name="app"):
        """The lease record as a dict, {} if there is none."""
        return record_of({k: v for k, v in self.item(name).items() if k != "pk"})

    def write_record(self, name="app", **fields):
        """Sets these fields of the record."""
        item = {**self.item(name), **item_of({**self.record(name), **fields}), **self._key(name)}
        put = self.call("PutItem", {"TableName": TABLE, "Item": item})
        assert put.status == 200, put

    def delete_record(self, name="app"):
        gone = self.call("DeleteItem", {"TableName": TABLE, "Key": self._key(name)})
        assert gone.status == 200, gone

    # ---- what it did ----

    def monitor(self):
        return _Carried(self._front)

    # ---- life ----

    @property
    def process(self):
        return self._process

    def freeze(self):
        self._process.freeze()

    def cont(self):
        self._process.cont()

    def kill(self):
        self._process.kill9()

    def start(self):
        self._start()

    def restart(self):
        """Ends it (cleanly if it still runs) and starts it again on the same port."""
        if self._process.running():
            self._process.terminate()
        self._start()

    def close(self):
        self._front.close()
        self._process.close()


class _Carried:
    """The commands that were answered, each at the instant it came to the server: not later than it
    was carried out, not earlier than it was sent."""

    def __init__(self, front):
        self._front = front

    def commands(self, since=0.0):
        """[(time, DynamoCommand)]"""
        return [(l.at, l.command) for l in list(self._front.log)
                if l.answer is not None and l.at >= since]

    def lease_writes(self, since=0.0):
        return [(t, c) for t, c in self.commands(since) if c.is_write]

    def lease_reads(self, since=0.0):
        return [(t, c) for t, c in self.commands(since) if c.is_read]

    def close(self):
        pass
