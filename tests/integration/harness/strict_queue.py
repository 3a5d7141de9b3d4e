"""One queue, as strict as SQS is or stricter: messages are invisible for exactly their time-out,
every receive makes the handles before it stale, FIFO groups wait for what is in flight. No I/O."""

import base64
import hashlib
import itertools
import re
import struct
import time
import uuid

from .sqs_wire import SqsError

MESSAGE_BYTES_MAX = 1024 * 1024   # the quota of today, message attributes counted in
BATCH_ENTRIES_MAX = 10
DEDUPLICATION_SECONDS = 300
# What XML 1.0 cannot carry, SQS does not: its reference lists the characters that it takes.
ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Message:
    def __init__(self, number, parameters, now, delay):
        self.id = str(uuid.uuid4())
        self.number = number
        self.body = parameters["MessageBody"]
        self.attributes = parameters.get("MessageAttributes") or {}
        self.group = parameters.get("MessageGroupId")
        self.deduplication_id = parameters.get("MessageDeduplicationId")
        self.visible_at = now + delay
        self.sent_ms = int(time.time() * 1000)
        self.first_received_ms = 0
        self.receive_count = 0
        self.handle = None      # the newest: all before it are stale
        self.receives = []      # (when its poll began, when it got it), wall clock, of each receive

    def in_flight(self, now):
        return self.handle is not None and self.visible_at > now


def md5(data):
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def md5_of_attributes(attributes):
    """As the reference has it: names sorted; each length in four bytes, big-endian."""
    out = b""
    for name in sorted(attributes):
        value = attributes[name]
        binary = value["DataType"].startswith("Binary")
        content = base64.b64decode(value["BinaryValue"]) if binary else value["StringValue"].encode()
        for part in (name.encode(), value["DataType"].encode()):
            out += struct.pack(">I", len(part)) + part
        out += (b"\2" if binary else b"\1") + struct.pack(">I", len(content)) + content
    return md5(out)


def size_of(parameters):
    size = len(parameters.get("MessageBody", "").encode("utf-8", "surrogatepass"))
    for name, value in (parameters.get("MessageAttributes") or {}).items():
        content = value.get("StringValue") or base64.b64decode(value.get("BinaryValue", ""))
        size += len(name) + len(value["DataType"]) + len(content)
    return size


class Queue:
    def __init__(self, name, attributes):
        self.name = name
        self.fifo = name.endswith(".fifo")
        self.attributes = {"VisibilityTimeout": "30", "ReceiveMessageWaitTimeSeconds": "0",
                           "DelaySeconds": "0", "MaximumMessageSize": str(MESSAGE_BYTES_MAX),
                           "MessageRetentionPeriod": "345600", **attributes}
        self.tags = {}
        self.messages = []      # in the order they came
        self.deleted = {}       # id -> Message
        self.purged_at = None
        self._numbers = itertools.count(1)
        self._seen = {}         # deduplication id -> (until, Message)

    # ---- sending ----

    def check(self, parameters):
        body = parameters.get("MessageBody")
        if not body:
            raise SqsError("MissingParameter", "The request must contain the parameter MessageBody.")
        texts = [body, *(v.get("StringValue", "") for v in
                         (parameters.get("MessageAttributes") or {}).values())]
        if any(ILLEGAL.search(text) for text in texts):
            raise SqsError("InvalidMessageContents", "Invalid characters found. Valid unicode characters are "
                           "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
        if size_of(parameters) > int(self.attributes["MaximumMessageSize"]):
            raise SqsError("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be "
                           f"shorter than {self.attributes['MaximumMessageSize']} bytes.")
        if self.fifo and not parameters.get("MessageGroupId"):
            raise SqsError("MissingParameter", "The request must contain the parameter MessageGroupId.")

    def send(self, parameters, now):
        self.check(parameters)
        if self.fifo:
            known = self._deduplicate(parameters, now)
            if known is not None:
                return self._sent(known)
        delay = parameters.get("DelaySeconds", int(self.attributes["DelaySeconds"]))
        message = Message(next(self._numbers), parameters, now, delay)
        self.messages.append(message)
        if self.fifo:
            self._seen[message.deduplication_id] = (now + DEDUPLICATION_SECONDS, message)
        return self._sent(message)

    def _deduplicate(self, parameters, now):
        if not parameters.get("MessageDeduplicationId"):
            if self.attributes.get("ContentBasedDeduplication") != "true":
                raise SqsError("InvalidParameterValue", "The queue should either have ContentBasedDeduplication "
                               "enabled or MessageDeduplicationId provided explicitly")
            parameters["MessageDeduplicationId"] = hashlib.sha256(
                parameters["MessageBody"].encode()).hexdigest()
        until, message = self._seen.get(parameters["MessageDeduplicationId"], (0, None))
        return message if until > now else None

    def _sent(self, message):
        result = {"MessageId": message.id, "MD5OfMessageBody": md5(message.body.encode())}
        if message.attributes:
            result["MD5OfMessageAttributes"] = md5_of_attributes(message.attributes)
        if self.fifo:
            result["SequenceNumber"] = f"{message.number:020d}"
        return result

    # ---- receiving ----

    def receive(self, count, visibility, now, asked_at=None):
        """Messages that are visible, now in flight; [] if there are none. `asked_at`: for the record."""
        got = []
        busy = {m.group for m in self.messages if m.in_flight(now)} if self.fifo else ()
        for message in self.messages:
            if len(got) == count:
                break
            if message.visible_at > now or (self.fifo and message.group in busy):
                continue
            message.handle = f"{self.name}#{message.id}#{uuid.uuid4()}"
            message.visible_at = now + visibility
            message.receive_count += 1
            message.receives.append((asked_at, time.time()))
            message.first_received_ms = message.first_received_ms or int(time.time() * 1000)
            got.append(message)
        return got

    def next_change(self, now):
        """When a message that is not visible now will be; None: never by itself."""
        return min((m.visible_at for m in self.messages if m.visible_at > now), default=None)

    # ---- by receipt handle ----

    def _find(self, handle):
        """The message, or None if it is deleted; a handle that is not ours is an error."""
        name, _, rest = str(handle).partition("#")
        message_id = rest.partition("#")[0]
        if name != self.name or not message_id:
            raise SqsError("ReceiptHandleIsInvalid", "The input receipt handle is invalid.", 404)
        return next((m for m in self.messages if m.id == message_id), None)

    def delete(self, handle, now):
        """A stale handle is refused, for standard queues too: SQS says that it may do nothing then,
        which a test would not notice."""
        message = self._find(handle)
        if message is None:
            return
        if message.handle != handle or message.visible_at <= now:
            raise SqsError("InvalidParameterValue", f"Value {handle} for parameter ReceiptHandle is invalid. "
                           "Reason: The receipt handle has expired.")
        self.messages.remove(message)
        self.deleted[message.id] = message

    def change_visibility(self, handle, seconds, now):
        message = self._find(handle)
        if message is None or message.visible_at <= now:
            raise SqsError("MessageNotInflight", "The specified message isn't in flight.")
        if message.handle != handle:
            raise SqsError("InvalidParameterValue", f"Value {handle} for parameter ReceiptHandle is invalid. "
                           "Reason: The receipt handle has expired.")
        message.visible_at = now + seconds

    def purge(self, now):
        if self.purged_at is not None and now - self.purged_at < 60:
            raise SqsError("PurgeQueueInProgress", "Only one PurgeQueue operation on each queue is allowed every "
                           "60 seconds.", 403)
        self.purged_at = now
        self.messages = []

    def counts(self, now):
        flying = sum(m.in_flight(now) for m in self.messages)
        delayed = sum(m.visible_at > now for m in self.messages) - flying
        return {"ApproximateNumberOfMessages": str(len(self.messages) - flying - delayed),
                "ApproximateNumberOfMessagesNotVisible": str(flying),
                "ApproximateNumberOfMessagesDelayed": str(delayed)}


def check_entries(entries, operation):
    """What is wrong with a batch as a whole."""
    if not entries:
        raise SqsError("EmptyBatchRequest", "There should be at least one entry in the request.")
    if len(entries) > BATCH_ENTRIES_MAX:
        raise SqsError("TooManyEntriesInBatchRequest", f"Maximum number of entries per request are 10. You have sent "
                       f"{len(entries)}.")
    ids = [str(entry.get("Id", "")) for entry in entries]
    if len(set(ids)) < len(ids):
        raise SqsError("BatchEntryIdsNotDistinct", "Two or more batch entries in the request have the same Id.")
    if not all(ENTRY_ID.fullmatch(each) for each in ids):
        raise SqsError("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and "
                       "underscores. It can be at most 80 letters long.")
    if operation == "SendMessageBatch" and sum(map(size_of, entries)) > MESSAGE_BYTES_MAX:
        raise SqsError("BatchRequestTooLong", f"Batch requests cannot be longer than {MESSAGE_BYTES_MAX} bytes.")
