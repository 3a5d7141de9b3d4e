"""boto3 for SQS, driven by lines on standard input, {"operation", "parameters"}; each is answered by a
line on standard output. Bytes travel as {"base64": ...}, both ways. Run with PYTHONPATH at the boto3
that is meant; it speaks the protocol that its age speaks."""

import base64
import json
import re
import sys
import warnings

warnings.simplefilter("ignore")   # boto3 about Python versions to come

import boto3  # noqa: E402
import botocore.exceptions  # noqa: E402


def revive(value):
    return base64.b64decode(value["base64"]) if set(value) == {"base64"} else value


def plain(value):
    return {"base64": base64.b64encode(value).decode()}   # json asks only about what it does not know


def run(client, operation, parameters):
    method = getattr(client, re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower())
    try:
        result = method(**parameters)
    except botocore.exceptions.ClientError as error:
        meta = error.response["ResponseMetadata"]
        return {"code": error.response["Error"]["Code"], "name": type(error).__name__, "message": str(error),
                "status": meta["HTTPStatusCode"], "attempts": meta.get("RetryAttempts", 0) + 1}
    except botocore.exceptions.BotoCoreError as error:
        return {"code": type(error).__name__, "name": type(error).__name__, "message": str(error)}
    meta = result.pop("ResponseMetadata")
    return {"result": result, "status": meta["HTTPStatusCode"], "attempts": meta.get("RetryAttempts", 0) + 1}


def main():
    client = boto3.client("sqs", **json.loads(sys.argv[1]))
    for line in sys.stdin:
        asked = json.loads(line, object_hook=revive)
        print(json.dumps(run(client, asked["operation"], asked["parameters"]), default=plain), flush=True)


if __name__ == "__main__":
    main()
