"""An SQS of our own in this process, for what emulators get wrong or never do: it checks signatures
and the signing time, refuses stale handles and illegal characters, swallows what comes to a poll
whose client has gone, fails entries of batches, throttles and errs when told to, and notes every
request as it arrived. Both protocols. What a queue holds and refuses is strict_queue.py's."""

import collections
import email.utils
import http.server
import socket
import threading
import time

from . import aws_request, sigv4_verify, sqs_wire, strict_queue
from .sqs_wire import SqsError

ACCOUNT = "000000000000"
MAX_WAIT_SECONDS = 20


class SqsRequest:
    """One as it arrived. .status is None until it was answered, 0 if the client had gone by then."""

    def __init__(self, at, method, path, headers, body):
        self.at = at
        self.method = method
        self.path = path
        self.headers = headers      # [(name, value)], as on the wire
        self.body = body
        self.operation = ""
        self.parameters = {}
        self.status = None
        self.ended_at = None
        self.error = ""

    def header(self, name):
        return next((v for k, v in self.headers if k.lower() == name.lower()), "")

    @property
    def is_json(self):
        return "x-amz-json" in self.header("Content-Type")

    def __repr__(self):
        return f"<{self.at:.3f} {self.operation} {str(self.parameters)[:150]} -> {self.status} {self.error}>"


class _Fault:
    def __init__(self, operation, times, error, delay):
        self.operation, self.left, self.error, self.delay = operation, times, error, delay
        self.hits = 0


class StrictSqs:
    """Serving when made. `credentials`: access key -> secret. `skew`: seconds that its clock is ahead."""

    exact = True

    def __init__(self, queues=("orders",), credentials=None, skew=0.0):
        self.credentials = credentials or {aws_request.KEY: aws_request.SECRET}
        self.skew = skew
        self.queues = {}
        self.requests = []
        self.bugs = []          # of this file
        self._faults = []
        self._entry_faults = collections.deque()
        self.changed = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.sqs = self
        self.port = self._server.server_address[1]
        self.closing = False
        for name in queues:
            self.create_queue(name)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    # ---- for tests ----

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self):
        key, secret = next(iter(self.credentials.items()))
        return aws_request.environment(key, secret)

    def queue_url(self, name="orders"):
        return f"{self.url}/{ACCOUNT}/{name}"

    def create_queue(self, name, attributes=None):
        with self.changed:
            return self.queues.setdefault(name, strict_queue.Queue(name, attributes or {}))

    def send(self, *bodies, queue="orders", **parameters):
        """By another producer, past every sidecar."""
        with self.changed:
            for body in bodies:
                self.queues[queue].send({"MessageBody": body, **parameters}, time.monotonic())
            self.changed.notify_all()

    @property
    def accepted(self):
        """Connections so far."""
        return self._server.accepted

    def of(self, operation, since=0.0):
        return [r for r in list(self.requests) if r.operation == operation and r.at >= since]

    def fault(self, operation, code, message="as the test wants it", status=400, times=1, delay=0.0):
        """The next `times` such calls (any for None) are answered so; nothing is done by them."""
        fault = _Fault(operation, times, SqsError(code, message, status) if code else None, delay)
        self._faults.append(fault)
        return fault

    def throttle(self, operation=None, times=1):
        return self.fault(operation, "RequestThrottled", "Request is throttled.", 403, times)

    def fail_entries(self, *positions):
        """In the next batch, the entries at these positions fail; the answer is a 200."""
        self._entry_faults.append(set(positions))

    def wait_polls(self, count):
        """How many ReceiveMessage calls are open now."""
        return len([r for r in self.of("ReceiveMessage") if r.status is None]) >= count

    def close(self):
        self.closing = True
        with self.changed:
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._server.cut_all()
        self._thread.join(5)
        assert not self.bugs, f"StrictSqs itself failed: {self.bugs}"

    # ---- what the service does ----

    def answer(self, request):
        """(status, body, headers) of a request."""
        try:
            self._check_signature(request)
            if request.is_json:
                request.operation, request.parameters = sqs_wire.read_json(
                    request.body, request.header("X-Amz-Target"))
            else:
                request.operation, request.parameters = sqs_wire.read_query(request.body, request.path)
            result = self._run(request)
            status = 200
        except SqsError as error:
            request.error, status = error.code, error.status
            if request.is_json:
                body, headers = sqs_wire.json_error(error)
            else:
                body, headers = sqs_wire.query_error(error), []
        else:
            body, headers = (sqs_wire.write_json(result or {}), []) if request.is_json else \
                (sqs_wire.write_query(request.operation, result), [])
        kind = "application/x-amz-json-1.0" if request.is_json else "text/xml"
        return status, body, [("Content-Type", kind), *headers]

    def _check_signature(self, request):
        refusal = refusal_of(request, self.credentials, time.time() + self.skew)
        if refusal is not None:
            raise SqsError(*refusal, 403)

    def _run(self, request):
        fault = self._fault_for(request.operation)
        if fault is not None:
            self.sleep(fault.delay)
            if fault.error is not None:
                raise fault.error
        operation = getattr(self, "_do_" + request.operation, None)
        if operation is None:
            raise SqsError("InvalidAction", f"The action {request.operation} is not valid for this endpoint.")
        if request.operation == "ReceiveMessage":   # waits: holds the lock itself
            return operation(request.parameters)
        with self.changed:
            result = operation(request.parameters)
            self.changed.notify_all()
        return result

    def sleep(self, seconds):
        """A slow service, until it is closed."""
        end = time.monotonic() + seconds
        with self.changed:
            while not self.closing and time.monotonic() < end:
                self.changed.wait(end - time.monotonic())

    def _fault_for(self, operation):
        with self.changed:
            for fault in self._faults:
                if fault.left > 0 and fault.operation in (None, operation):
                    fault.left -= 1
                    fault.hits += 1
                    return fault
        return None

    def _queue(self, parameters):
        url = parameters.get("QueueUrl", "")
        host, _, path = url.partition("://")[2].partition("/") if "://" in url else ("", "", url.strip("/"))
        if host and host != f"127.0.0.1:{self.port}":
            raise SqsError("InvalidAddress", f"The address {url} is not valid for this endpoint.", 404)
        account, _, name = path.partition("/")
        if account != ACCOUNT or name not in self.queues:
            raise SqsError("QueueDoesNotExist", "The specified queue does not exist.")
        return self.queues[name]

    # ---- queues ----

    def _do_CreateQueue(self, p):
        self.create_queue(p["QueueName"], p.get("Attributes"))
        return {"QueueUrl": self.queue_url(p["QueueName"])}

    def _do_GetQueueUrl(self, p):
        if p.get("QueueName") not in self.queues:
            raise SqsError("QueueDoesNotExist", "The specified queue does not exist.")
        return {"QueueUrl": self.queue_url(p["QueueName"])}

    def _do_ListQueues(self, p):
        return {"QueueUrls": [self.queue_url(name) for name in sorted(self.queues)
                              if name.startswith(p.get("QueueNamePrefix", ""))]}

    def _do_DeleteQueue(self, p):
        del self.queues[self._queue(p).name]

    def _do_PurgeQueue(self, p):
        self._queue(p).purge(time.monotonic())

    def _do_GetQueueAttributes(self, p):
        queue = self._queue(p)
        every = {**queue.attributes, **queue.counts(time.monotonic()),
                 "QueueArn": f"arn:aws:sqs:{aws_request.REGION}:{ACCOUNT}:{queue.name}",
                 **({"FifoQueue": "true"} if queue.fifo else {})}
        wanted = p.get("AttributeNames", [])
        return {"Attributes": {k: v for k, v in every.items() if "All" in wanted or k in wanted}}

    def _do_SetQueueAttributes(self, p):
        self._queue(p).attributes.update(p.get("Attributes", {}))

    def _do_TagQueue(self, p):
        self._queue(p).tags.update(p.get("Tags", {}))

    def _do_UntagQueue(self, p):
        for key in p.get("TagKeys", []):
            self._queue(p).tags.pop(key, None)

    def _do_ListQueueTags(self, p):
        return {"Tags": dict(self._queue(p).tags)}

    # ---- messages ----

    def _do_SendMessage(self, p):
        return self._queue(p).send(p, time.monotonic())

    def _do_ReceiveMessage(self, p):
        """To its end even if the client has gone: what comes then is in flight, and nobody has it."""
        with self.changed:
            queue = self._queue(p)
            count = p.get("MaxNumberOfMessages", 1)
            if not 1 <= count <= strict_queue.BATCH_ENTRIES_MAX:
                raise SqsError("InvalidParameterValue", f"Value {count} for parameter MaxNumberOfMessages is invalid. "
                               "Reason: Must be between 1 and 10, if provided.")
            wait = int(p.get("WaitTimeSeconds", queue.attributes["ReceiveMessageWaitTimeSeconds"]))
            if not 0 <= wait <= MAX_WAIT_SECONDS:
                raise SqsError("InvalidParameterValue", f"Value {wait} for parameter WaitTimeSeconds is invalid. "
                               "Reason: Must be >= 0 and <= 20, if provided.")
            visibility = int(p.get("VisibilityTimeout", queue.attributes["VisibilityTimeout"]))
            end, asked_at = time.monotonic() + wait, time.time()
            while True:
                now = time.monotonic()
                got = queue.receive(count, visibility, now, asked_at)
                if got or now >= end or self.closing:
                    break
                self.changed.wait(min(end, queue.next_change(now) or end) - now)
            return {"Messages": [_received(m, p, queue.fifo) for m in got]} if got else {}

    def _do_DeleteMessage(self, p):
        self._queue(p).delete(p.get("ReceiptHandle"), time.monotonic())

    def _do_ChangeMessageVisibility(self, p):
        self._queue(p).change_visibility(p.get("ReceiptHandle"), int(p["VisibilityTimeout"]), time.monotonic())

    def _batch(self, operation, p, one):
        queue, entries = self._queue(p), p.get("Entries")
        strict_queue.check_entries(entries, operation)
        to_fail = self._entry_faults.popleft() if self._entry_faults else ()
        result = {"Successful": [], "Failed": []}
        for position, entry in enumerate(entries):
            try:
                if position in to_fail:
                    raise SqsError("InternalError", "as the test wants it", 500)
                result["Successful"].append({"Id": entry["Id"], **(one(queue, entry) or {})})
            except SqsError as error:
                result["Failed"].append({"Id": entry["Id"], "SenderFault": error.status < 500, "Code": error.code,
                                         "Message": error.message})
        return {k: v for k, v in result.items() if v}

    def _do_SendMessageBatch(self, p):
        return self._batch("SendMessageBatch", p, lambda queue, e: queue.send(e, time.monotonic()))

    def _do_DeleteMessageBatch(self, p):
        return self._batch("DeleteMessageBatch", p,
                           lambda queue, e: queue.delete(e.get("ReceiptHandle"), time.monotonic()))

    def _do_ChangeMessageVisibilityBatch(self, p):
        return self._batch("ChangeMessageVisibilityBatch", p, lambda queue, e: queue.change_visibility(
            e.get("ReceiptHandle"), int(e["VisibilityTimeout"]), time.monotonic()))


# What a service says to each kind of finding, in JSON and in Query; to all others as to a mismatch.
MISMATCH = ("InvalidSignatureException", "SignatureDoesNotMatch")
REFUSALS = {sigv4_verify.MISSING: ("MissingAuthenticationTokenException", "MissingAuthenticationToken"),
            sigv4_verify.MALFORMED: ("IncompleteSignatureException", "IncompleteSignature"),
            sigv4_verify.UNKNOWN_KEY: ("UnrecognizedClientException", "InvalidClientTokenId")}


def refusal_of(request, credentials, now):
    """None, or (code, message): the first thing that is wrong with a request's signature. Hop headers
    that are signed and headers passed on are refused too, which a service would let pass today."""
    found = sigv4_verify.verify(request.method, request.path, request.headers, request.body, credentials, now=now,
                                region=aws_request.REGION, service="sqs")
    if not found:
        return None
    code = REFUSALS.get(found[0].kind, MISMATCH)[0 if request.is_json else 1]
    if found[0].kind == sigv4_verify.EXPIRED:
        return code, _expired(request.header("X-Amz-Date"), now)
    return code, "; ".join(finding.text for finding in found)


def _expired(signed, now):
    """In AWS' own words, by which clients know that it is their clock."""
    stamp = lambda instant: time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(instant))
    apart = sigv4_verify.SECONDS_APART_MAX
    if signed < stamp(now):
        return f"Signature expired: {signed} is now earlier than {stamp(now - apart)} ({stamp(now)} - 5 min.)"
    return f"Signature not yet current: {signed} is still later than {stamp(now + apart)} ({stamp(now)} + 5 min.)"


def _received(message, p, fifo):
    got = {"MessageId": message.id, "ReceiptHandle": message.handle, "Body": message.body,
           "MD5OfBody": strict_queue.md5(message.body.encode())}
    every = {"SenderId": ACCOUNT, "SentTimestamp": str(message.sent_ms),
             "ApproximateReceiveCount": str(message.receive_count),
             "ApproximateFirstReceiveTimestamp": str(message.first_received_ms)}
    if fifo:
        every.update(MessageGroupId=message.group, SequenceNumber=f"{message.number:020d}",
                     MessageDeduplicationId=message.deduplication_id)
    wanted = [*p.get("AttributeNames", []), *p.get("MessageSystemAttributeNames", [])]
    attributes = {k: v for k, v in every.items() if "All" in wanted or k in wanted}
    if attributes:
        got["Attributes"] = attributes
    names = p.get("MessageAttributeNames", [])
    asked = {k: v for k, v in message.attributes.items()
             if k in names or "All" in names or ".*" in names
             or any(n.endswith(".*") and k.startswith(n[:-1]) for n in names)}
    if asked:
        got["MessageAttributes"] = asked
        got["MD5OfMessageAttributes"] = strict_queue.md5_of_attributes(asked)
    return got


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def __init__(self, *arguments):
        self._open = set()
        self.accepted = 0
        super().__init__(*arguments)

    def get_request(self):
        request, client = super().get_request()
        self.accepted += 1
        self._open.add(request)
        return request, client

    def shutdown_request(self, request):
        self._open.discard(request)
        super().shutdown_request(request)

    def cut_all(self):
        for request in list(self._open):
            try:
                request.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def handle_error(self, request, client_address):
        pass  # connections that tests cut


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536  # head and body in one segment

    def do_POST(self):
        sqs = self.server.sqs
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = SqsRequest(time.time(), self.command, self.path, self.headers.items(), body)
        sqs.requests.append(request)
        try:
            status, body, headers = sqs.answer(request)
        except Exception as error:  # told when the test closes it
            sqs.bugs.append(f"{error!r} at {request}")
            raise
        try:
            self.send_response(status)
            for name, value in [*headers, ("Content-Length", str(len(body)))]:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
            request.status = status
        except OSError:
            request.status = 0
        request.ended_at = time.time()

    do_GET = do_PUT = do_DELETE = do_POST

    def date_time_string(self, timestamp=None):
        """The Date header, by the service's clock."""
        return email.utils.formatdate((timestamp or time.time()) + self.server.sqs.skew, usegmt=True)

    def log_message(self, *_):
        pass
