"""Signed requests of the test's own to an AWS service: the other hand in the store, and clients that
no SDK would be. Signed by the published algorithm (Signature Version 4) with the standard library."""

import datetime
import hashlib
import hmac
import http.client
import json
from urllib.parse import parse_qsl, quote, urlencode

REGION = "eu-central-1"
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # AWS' own documented example

# For every process that is to find these credentials and nothing of the machine's own (conftest.py has
# taken the variables that this does not name out of ours).
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION,
    "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def environment(key=KEY, secret=SECRET):
    return {**ENVIRONMENT, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}


def with_credentials_file(path):
    """ENVIRONMENT, but for the credentials: those are in the file."""
    return {**{k: v for k, v in ENVIRONMENT.items() if "KEY" not in k}, "AWS_SHARED_CREDENTIALS_FILE": str(path)}


def write_credentials(path, key, secret):
    """At once and whole, as whatever renews such a file does it."""
    new = path.with_suffix(".new")
    new.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")
    new.replace(path)


def _hmac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signed_headers(service, method, host, target, headers, body, key=KEY, secret=SECRET,
                   region=REGION, now=None):
    """`headers` and those that sign them. `target` is the path as it goes out, with its query."""
    now = now or datetime.datetime.now(datetime.timezone.utc)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    headers = {**headers, "Host": host, "X-Amz-Date": stamp}
    lower = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    names = ";".join(sorted(lower))
    path, _, query = target.partition("?")
    pairs = sorted((quote(k, "-_.~"), quote(v, "-_.~")) for k, v in parse_qsl(query, True))
    canonical = "\n".join([
        method, quote(path, "/-_.~"), "&".join(f"{k}={v}" for k, v in pairs),
        *(f"{name}:{lower[name]}" for name in sorted(lower)), "", names,
        hashlib.sha256(body).hexdigest()])
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    signing_key = _hmac(("AWS4" + secret).encode(), day)
    for part in (region, service, "aws4_request"):
        signing_key = _hmac(signing_key, part)
    signature = hmac.new(signing_key, text.encode(), hashlib.sha256).hexdigest()
    return {**headers, "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/{scope}, "
                                        f"SignedHeaders={names}, Signature={signature}"}


class AwsAnswer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


def send(address, service, headers, body, target="/", timeout=40, **signing):
    """One POST on a connection of its own; an AwsAnswer. `address`: (host, port)."""
    host = "%s:%d" % address
    connection = http.client.HTTPConnection(*address, timeout=timeout)
    try:
        connection.request("POST", target, body, signed_headers(service, "POST", host, target, headers, body,
                                                                **signing))
        response = connection.getresponse()
        return AwsAnswer(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


def dynamodb(address, operation, parameters, **options):
    return send(address, "dynamodb", {"Content-Type": "application/x-amz-json-1.0",
                                      "X-Amz-Target": f"DynamoDB_20120810.{operation}"},
                json.dumps(parameters).encode(), **options)


def sqs(address, operation, parameters, **options):
    """SQS in its JSON protocol."""
    return send(address, "sqs", {"Content-Type": "application/x-amz-json-1.0",
                                 "X-Amz-Target": f"AmazonSQS.{operation}"},
                json.dumps(parameters).encode(), **options)


def query(address, service, operation, parameters, version="2012-11-05", **options):
    """The Query protocol: a form in, XML out. SQS' older one, IAM's only one (2010-05-08)."""
    return send(address, service, {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
                urlencode({"Action": operation, "Version": version, **parameters}).encode(), **options)
