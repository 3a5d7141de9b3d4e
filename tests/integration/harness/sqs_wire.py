"""SQS' two protocols as a service sees them: JSON 1.0, and Query (a form in, XML out). Both become
one form of parameters, the JSON one, and go back from it. Written from the service's API reference;
it takes nothing from the sidecar's own codec, which it is there to judge."""

import json
import re
import uuid
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

JSON_TARGET = "AmazonSQS."

# Query's flattened members: JSON's name of a list -> its form prefix.
LISTS = {"AttributeNames": "AttributeName", "MessageAttributeNames": "MessageAttributeName",
         "MessageSystemAttributeNames": "MessageSystemAttributeName", "TagKeys": "TagKey"}
ENTRIES = {"SendMessageBatch": "SendMessageBatchRequestEntry",
           "DeleteMessageBatch": "DeleteMessageBatchRequestEntry",
           "ChangeMessageVisibilityBatch": "ChangeMessageVisibilityBatchRequestEntry"}
# Maps: JSON's name -> (form prefix, name of the key member, name of the value member).
MAPS = {"Attributes": ("Attribute", "Name", "Value"),
        "MessageAttributes": ("MessageAttribute", "Name", "Value"),
        "MessageSystemAttributes": ("MessageSystemAttribute", "Name", "Value"),
        "Tags": ("Tag", "Key", "Value"), "tags": ("Tag", "Key", "Value")}
NUMBERS = {"WaitTimeSeconds", "MaxNumberOfMessages", "VisibilityTimeout", "DelaySeconds", "MaxResults"}

# JSON's error type -> Query's code, where they differ (the reference lists both).
QUERY_CODES = {
    "QueueDoesNotExist": "AWS.SimpleQueueService.NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "EmptyBatchRequest": "AWS.SimpleQueueService.EmptyBatchRequest",
    "TooManyEntriesInBatchRequest": "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
    "BatchEntryIdsNotDistinct": "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
    "InvalidBatchEntryId": "AWS.SimpleQueueService.InvalidBatchEntryId",
    "BatchRequestTooLong": "AWS.SimpleQueueService.BatchRequestTooLong",
    "MessageNotInflight": "AWS.SimpleQueueService.MessageNotInflight",
    "PurgeQueueInProgress": "AWS.SimpleQueueService.PurgeQueueInProgress",
    "UnsupportedOperation": "AWS.SimpleQueueService.UnsupportedOperation",
}


class SqsError(Exception):
    """`code` as JSON has it. Status 400 is the sender's fault, 500 and above ours."""

    def __init__(self, code, message, status=400):
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


def _numbered(tree):
    """{"1": a, "2": b} as [a, b]."""
    return [tree[key] for key in sorted(tree, key=int)]


def _tree(form):
    """a.1.b=c as {"a": {"1": {"b": "c"}}}."""
    root = {}
    for name, value in form:
        at = root
        *path, last = name.split(".")
        for step in path:
            at = at.setdefault(step, {})
        at[last] = value
    return root


def _from_tree(tree):
    """The form's tree in JSON's names."""
    parameters = {k: int(v) if k in NUMBERS and re.fullmatch(r"-?\d+", v) else v
                  for k, v in tree.items() if isinstance(v, str)}
    for name, prefix in LISTS.items():
        if prefix in tree:
            parameters[name] = _numbered(tree[prefix])
    for name, (prefix, key, value) in MAPS.items():
        if prefix in tree:
            parameters[name] = {each[key]: each.get(value, "") for each in _numbered(tree[prefix])}
    return parameters


def read_query(body, path):
    """(operation, parameters) of a form."""
    tree = _tree(parse_qsl(body.decode(), keep_blank_values=True))
    operation = tree.pop("Action", "")
    tree.pop("Version", None)
    parameters = _from_tree(tree)
    if operation in ENTRIES:
        parameters["Entries"] = [_from_tree(each) for each in
                                 _numbered(tree.get(ENTRIES[operation], {}))]
    if "QueueUrl" not in parameters and path.strip("/"):
        parameters["QueueUrl"] = unquote(path)
    return operation, parameters


def read_json(body, target):
    try:
        parameters = json.loads(body or b"{}")
    except ValueError:
        raise SqsError("SerializationException", "the body is no JSON") from None
    return target.removeprefix(JSON_TARGET), parameters


# ---- answers ----

RESULT_LISTS = {"QueueUrls": "QueueUrl", "Messages": "Message", "Failed": "BatchResultErrorEntry",
                "queueUrls": "QueueUrl"}
SUCCESSFUL = {"SendMessageBatch": "SendMessageBatchResultEntry",
              "DeleteMessageBatch": "DeleteMessageBatchResultEntry",
              "ChangeMessageVisibilityBatch": "ChangeMessageVisibilityBatchResultEntry"}


def _xml(name, value, operation):
    if name == "Successful":
        name = SUCCESSFUL[operation]
        return "".join(f"<{name}>{_members(each, operation)}</{name}>" for each in value)
    if name in RESULT_LISTS:
        return "".join(_xml(RESULT_LISTS[name], each, operation) for each in value)
    if name in MAPS and isinstance(value, dict):
        inner, key, content = MAPS[name]
        return "".join(f"<{inner}><{key}>{escape(k)}</{key}>{_xml(content, v, operation)}</{inner}>"
                       for k, v in value.items())
    if isinstance(value, dict):
        return f"<{name}>{_members(value, operation)}</{name}>"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"<{name}>{escape(text, {chr(13): '&#13;'})}</{name}>"


def _members(result, operation):
    return "".join(_xml(k, v, operation) for k, v in result.items())


def write_query(operation, result):
    wrapped = ""
    if result is not None:
        wrapped = f"<{operation}Result>{_members(result, operation)}</{operation}Result>"
    return (f'<?xml version="1.0"?><{operation}Response xmlns="http://queue.amazonaws.com/doc/2012-11-05/">'
            f"{wrapped}<ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata>"
            f"</{operation}Response>").encode()


def write_json(result):
    return json.dumps(result).encode()


def query_error(error):
    kind = "Sender" if error.status < 500 else "Receiver"
    return ('<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error>'
            f"<Type>{kind}</Type><Code>{QUERY_CODES.get(error.code, error.code)}</Code>"
            f"<Message>{escape(error.message)}</Message><Detail/></Error>"
            f"<RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>").encode()


def json_error(error):
    """(body, headers)"""
    fault = "Sender" if error.status < 500 else "Receiver"
    return (json.dumps({"__type": f"com.amazonaws.sqs#{error.code}", "message": error.message}).encode(),
            [("x-amzn-query-error", f"{QUERY_CODES.get(error.code, error.code)};{fault}"),
             ("x-amzn-ErrorType", error.code)])
