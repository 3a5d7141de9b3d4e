"""Signs with botocore what it is told, as tests/sigv4/sign_main.cc does with our own code: one JSON
object a line in, one out. A program of its own, so that the SDK's packages are in no other process.
What it is told here besides: "pairs", the query not yet encoded, or null: then "query" as it is."""

import base64
import datetime
import json
import sys
import types

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials


def sign(told):
    now = datetime.datetime.fromtimestamp(told["time"], datetime.timezone.utc)
    botocore.auth.get_current_datetime = lambda *_: now.replace(tzinfo=None)
    url = f"https://{told['host']}{told['path']}" + (f"?{told['query']}" if told["query"] else "")
    request = AWSRequest(told["method"], url, data=base64.b64decode(told["body"]),
                         params=[tuple(pair) for pair in told["pairs"] or ()])
    for name, value in told["headers"]:
        request.headers.add_header(name, value)
    request.context["payload_signing_enabled"] = told["sign_payload"]
    request.context["client_config"] = types.SimpleNamespace(s3={"payload_signing_enabled": told["sign_payload"]})
    signer = botocore.auth.S3SigV4Auth if told["s3"] else botocore.auth.SigV4Auth
    credentials = Credentials(told["key"], told["secret"], told["token"] or None)
    signing = signer(credentials, told["service"], told["region"])
    signing.add_auth(request)
    wanted = ("X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-SHA256", "Authorization")
    added = [[name, request.headers[name]] for name in wanted if name in request.headers]
    del request.headers["Authorization"]
    return {"added": added, "canonical": signing.canonical_request(request)}


def main():
    for line in sys.stdin:
        print(json.dumps(sign(json.loads(line))))


if __name__ == "__main__":
    main()
