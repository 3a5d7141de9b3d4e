"""Recomputes the signature (Version 4) of a request as it arrived, as the service would, and says
what is wrong with it. Written from Amazon's description of the algorithm, with the standard library
only; it takes nothing from the sidecar, which it is there to judge, nor from an SDK.

    findings = verify("POST", "/", headers, body, {"AKID...": "secret"})
    assert not findings, findings

It is stricter than a service: it also finds what would pass today and fail behind the next proxy.
"""

import calendar
import hashlib
import hmac
import re
import time
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY = hashlib.sha256(b"").hexdigest()
UNRESERVED = "-_.~"           # quote() knows letters and digits
SECONDS_APART_MAX = 300       # services differ: five minutes is the strictest that is documented

# Added, dropped or rewritten by what stands between a sidecar and a service.
HOP_HEADERS = {
    "authorization", "connection", "content-length", "expect", "forwarded", "keep-alive", "max-forwards", "te",
    "trailer", "transfer-encoding", "upgrade", "user-agent", "via", "x-amzn-trace-id", "x-real-ip"}
HOP_PREFIXES = ("proxy-", "x-forwarded-")
# By which a client signed for the sidecar; twice there means that it was passed on.
SIGNATURE_HEADERS = ("authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256")

# The kinds of findings.
MISSING = "missing"            # no signature at all
MALFORMED = "malformed"        # not of this algorithm, or parts are missing
UNKNOWN_KEY = "unknown_key"    # a key that the service does not know
EXPIRED = "expired"            # too far from the service's time
SCOPE = "scope"                # another region or service, or another day than the date's
MISMATCH = "mismatch"          # recomputed, it is another; the text says why, where that can be found out
BODY = "body"                  # the body is not the one whose hash was sent
HOP_HEADER = "hop_header"      # a header is signed that a hop may change
PASSED_ON = "passed_on"        # what the client signed with is still there


class Finding(NamedTuple):
    kind: str
    text: str


class Claim(NamedTuple):
    """What an Authorization header says."""

    key: str
    day: str
    region: str
    service: str
    signed: list
    signature: str


# ---- the canonical form ----

def normal_path(path):
    """Without empty and dot segments; as all services but S3 take it."""
    kept = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return "/" + "/".join(kept) + ("/" if kept and path.endswith("/") else "")


def encoded(path):
    """Once more, as it stands: a "%" becomes "%25"."""
    return quote(path.encode("utf-8", "surrogateescape"), safe="/" + UNRESERVED)


def encoded_once(path):
    """S3: every name encoded once, however it came."""
    return "/".join(quote(unquote_to_bytes(part.encode("utf-8", "surrogateescape")), safe=UNRESERVED)
                    for part in path.split("/"))


def canonical_path(path, s3=False):
    return encoded_once(path or "/") if s3 else encoded(normal_path(path))


def _query_part(text):
    return quote(unquote_to_bytes(text.replace("+", " ").encode("utf-8", "surrogateescape")), safe=UNRESERVED)


def canonical_query(query):
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    return "&".join(f"{name}={value}" for name, value in
                    sorted((_query_part(name), _query_part(value)) for name, _, value in pairs))


def canonical_request(method, path, query, headers, signed, payload_hash):
    """`path` and `query` canonical already; `headers` as they arrived."""
    values = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(" ".join(value.split()))
    lines = [f"{name}:{','.join(values.get(name, []))}" for name in signed]
    return "\n".join([method, path, query, *lines, "", ";".join(signed), payload_hash])


def string_to_sign(canonical, date, claim):
    scope = f"{claim.day}/{claim.region}/{claim.service}/aws4_request"
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest()
    return "\n".join([ALGORITHM, date, scope, digest])


def signature_of(text, secret, claim):
    key = ("AWS4" + secret).encode()
    for part in (claim.day, claim.region, claim.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


# ---- the judgement ----

def read_authorization(value):
    """A Claim, or None for what is none."""
    match = re.fullmatch(
        ALGORITHM + r"\s+Credential=([^/,\s]+)/(\d{8})/([^/,\s]+)/([^/,\s]+)/aws4_request,\s*"
        r"SignedHeaders=([^,\s]+),\s*Signature=([0-9a-f]{64})", value.strip())
    if match is None:
        return None
    key, day, region, service, signed, signature = match.groups()
    return Claim(key, day, region, service, signed.split(";"), signature)


class _Request:
    def __init__(self, method, target, headers, body):
        self.method = method
        self.path, _, self.query = target.partition("?")
        self.headers = [(str(name), str(value)) for name, value in
                        (headers.items() if isinstance(headers, dict) else headers)]
        self.body = body

    def all(self, name):
        return [value for n, value in self.headers if n.lower() == name]

    def first(self, name):
        return next(iter(self.all(name)), "")

    def payload_hash(self):
        return self.first("x-amz-content-sha256") or hashlib.sha256(self.body).hexdigest()

    def signature(self, claim, secret, **other):
        """As it should be; `other` puts something else for path, query, signed or payload_hash."""
        parts = {"path": canonical_path(self.path, claim.service == "s3"), "query": canonical_query(self.query),
                 "signed": claim.signed, "payload_hash": self.payload_hash(), **other}
        canonical = canonical_request(self.method, parts["path"], parts["query"], self.headers, parts["signed"],
                                      parts["payload_hash"])
        return signature_of(string_to_sign(canonical, self.first("x-amz-date"), claim), secret, claim)


def _instant(date):
    try:
        return calendar.timegm(time.strptime(date, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        return None


def _find_headers(request, claim):
    """Hop headers that are signed, and what should be signed or gone."""
    for name in claim.signed:
        if name in HOP_HEADERS or name.startswith(HOP_PREFIXES):
            yield Finding(HOP_HEADER, f"{name} is signed, and a hop may add, drop or change it")
        if not request.all(name):
            yield Finding(MISMATCH, f"{name} is signed and not there")
    if claim.signed != sorted(set(claim.signed)):
        yield Finding(MALFORMED, f"SignedHeaders must be sorted, each once: {claim.signed}")
    for name in ("host", "x-amz-date"):
        if name not in claim.signed:
            yield Finding(MALFORMED, f"{name} must be signed")
    for name in SIGNATURE_HEADERS:
        if len(request.all(name)) > 1:
            yield Finding(PASSED_ON, f"{name} is there {len(request.all(name))} times: the client's own was passed on")
    for name in sorted({n.lower() for n, _ in request.headers}):
        if name.startswith("x-amz-") and name not in claim.signed:
            yield Finding(PASSED_ON, f"{name} is there and not signed: the client's own was passed on")


def _find_body(request, claim):
    claimed = request.first("x-amz-content-sha256")
    if claimed and claimed != UNSIGNED and claimed != hashlib.sha256(request.body).hexdigest():
        yield Finding(BODY, f"the body ({len(request.body)} bytes) is not the one whose hash X-Amz-Content-Sha256 has")
    if claim.service == "s3" and not claimed:
        yield Finding(MALFORMED, "S3 demands X-Amz-Content-Sha256")


def _why(request, claim, secret):
    """What would make the signature right: then that is what was done to the request."""
    guesses = {"path normalised (services but S3 only)": {"path": encoded(normal_path(request.path))},
             "path not normalised": {"path": encoded(request.path)},
             "path encoded once, not twice": {"path": encoded_once(request.path)},
             "path normalised and encoded once, not twice": {"path": encoded_once(normal_path(request.path))},
             "query not sorted, or encoded differently": {"query": request.query},
             "query not signed": {"query": ""},
             "body altered: it was signed with an empty one": {"payload_hash": EMPTY},
             "body not signed, and not said so": {"payload_hash": UNSIGNED},
             "body altered: its hash is not that of X-Amz-Content-Sha256":
                 {"payload_hash": hashlib.sha256(request.body).hexdigest()}}
    for name in claim.signed:
        guesses[f"{name} is named as signed, and is not"] = {"signed": [n for n in claim.signed if n != name]}
    for name in sorted({n.lower() for n, _ in request.headers} - set(claim.signed)):
        guesses[f"{name} is signed, and not named"] = {"signed": sorted([*claim.signed, name])}
    for text, other in guesses.items():
        if hmac.compare_digest(request.signature(claim, secret, **other), claim.signature):
            return text
    return "another secret, or a part of it was altered on the way"


def _find_time(request, claim, now):
    date = request.first("x-amz-date")
    instant = _instant(date)
    if instant is None:
        yield Finding(MALFORMED, f"X-Amz-Date {date!r} must be like 20150830T123600Z")
        return
    if not date.startswith(claim.day):
        yield Finding(SCOPE, f"the day of the scope is {claim.day}, that of X-Amz-Date {date[:8]}")
    if now is not None and abs(now - instant) > SECONDS_APART_MAX:
        yield Finding(EXPIRED, f"X-Amz-Date is {now - instant:+.0f} s from the service's time; "
                               f"{SECONDS_APART_MAX} s are the most")


def verify(method, target, headers, body, secrets, *, tokens=None, now=None, region=None, service=None, client_keys=()):
    """Findings, none if all is right. `target`: path and query as they arrived. `headers`: pairs, as they arrived.
    `secrets`: access key -> secret; `tokens`: access key -> the session token that goes with it. `now`: the service's
    unix time, None to accept any. `client_keys`: keys of clients, which must not get here."""
    request = _Request(method, target, headers, body)
    if not request.all("authorization"):
        return [Finding(MISSING, "there is no Authorization header")]
    claim = read_authorization(request.all("authorization")[0])
    if claim is None:
        return [Finding(MALFORMED, "Authorization is not of the form AWS4-HMAC-SHA256 Credential=.../aws4_request, "
                                   "SignedHeaders=..., Signature=...")]
    found = [*_find_headers(request, claim), *_find_time(request, claim, now), *_find_body(request, claim)]
    for what, has, wanted in (("region", claim.region, region), ("service", claim.service, service)):
        if wanted is not None and has != wanted:
            found.append(Finding(SCOPE, f"signed for the {what} {has!r}, it must be {wanted!r}"))
    if claim.key in client_keys:
        found.append(Finding(PASSED_ON, f"signed with the client's own key {claim.key}"))
    if claim.key not in secrets:
        found.append(Finding(UNKNOWN_KEY, f"the access key {claim.key!r} is not known"))
        return found
    if request.first("x-amz-security-token") != (tokens or {}).get(claim.key, ""):
        found.append(Finding(UNKNOWN_KEY, f"the session token is not the one of {claim.key}"))
    secret = secrets[claim.key]
    if not hmac.compare_digest(request.signature(claim, secret), claim.signature):
        found.append(Finding(MISMATCH, "the signature is not right: " + _why(request, claim, secret)))
    return found
