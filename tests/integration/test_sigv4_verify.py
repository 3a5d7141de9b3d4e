"""The verifier of signatures (harness/sigv4_verify.py) itself: it accepts what is right, and each fault
that it is there for is planted once and found, by its kind and in words."""

import datetime
import hashlib
import pathlib

import pytest
from harness import aws_request, sigv4_verify
from harness.sigv4_verify import BODY, EXPIRED, HOP_HEADER, MALFORMED, MISMATCH, MISSING, PASSED_ON, SCOPE, UNKNOWN_KEY

NOW = datetime.datetime(2026, 2, 28, 23, 59, 58, tzinfo=datetime.timezone.utc)
HOST = "127.0.0.1:4566"
BODY_BYTES = b'{"QueueUrl":"http://127.0.0.1:4566/000000000000/orders"}'


VECTORS = pathlib.Path(__file__).parents[1] / "unit" / "proto" / "vectors" / "sigv4.txt"


def vectors():
    """(name, form, request, canonical request, string to sign, signature) of each published vector."""
    for case in VECTORS.read_text().split("\n==== ")[1:]:
        name, _, rest = case.partition("\n")
        yield (*name.split(" "), *rest.rstrip("\n").split("\n----\n"))


@pytest.mark.parametrize("name, form, request_text, canonical, text, signature", vectors())
def test_a_published_vector(name, form, request_text, canonical, text, signature):
    head, _, body = request_text.partition("\n\n")
    line, *headers = head.split("\n")
    method, target = line.rpartition(" ")[0].split(" ", 1)
    path, _, query = target.partition("?")
    headers = [tuple(header.split(":", 1)) for header in headers]
    claimed = canonical.split("\n")[-2].split(";")
    assert sigv4_verify.canonical_request(
        method, sigv4_verify.canonical_path(path, form != "others"), sigv4_verify.canonical_query(query), headers,
        claimed, hashlib.sha256(body.encode()).hexdigest()) == canonical
    _, date, scope, _ = text.split("\n")
    claim = sigv4_verify.Claim("", *scope.split("/")[:3], claimed, signature)
    assert sigv4_verify.string_to_sign(canonical, date, claim) == text
    secret = "wJalrXUtnFEMI/K7MDENG%sbPxRfiCYEXAMPLEKEY" % ("/" if form == "s3" else "+")
    assert sigv4_verify.signature_of(text, secret, claim) == signature


def signed(target="/", body=BODY_BYTES, service="sqs", headers=None, **options):
    """Pairs of headers that are right, by the harness' own signer, another piece of code."""
    headers = headers or {"Content-Type": "application/x-amz-json-1.0"}
    made = aws_request.signed_headers(service, "POST", HOST, target, headers, body, now=NOW, **options)
    return list(made.items())


def found(headers, target="/", body=BODY_BYTES, **options):
    options = {"secrets": {aws_request.KEY: aws_request.SECRET}, "now": NOW.timestamp(), **options}
    return sigv4_verify.verify("POST", target, headers, body, options.pop("secrets"), **options)


def kinds(findings):
    return [finding.kind for finding in findings]


def replaced(headers, name, value):
    return [(n, value if n == name else v) for n, v in headers]


def test_a_right_request_has_no_finding():
    assert found(signed()) == []
    assert found(signed(), region=aws_request.REGION, service="sqs") == []
    assert found(signed("/?b=2&a=1&a=%2F&c"), "/?b=2&a=1&a=%2F&c") == []
    assert found(signed("/000000000000/orders"), "/000000000000/orders") == []


def test_a_session_token_must_be_the_keys():
    headers = signed(headers={"X-Amz-Security-Token": "token"})
    assert found(headers, tokens={aws_request.KEY: "token"}) == []
    assert kinds(found(headers, tokens={aws_request.KEY: "other"})) == [UNKNOWN_KEY]
    assert kinds(found(headers)) == [UNKNOWN_KEY]
    assert kinds(found(signed(), tokens={aws_request.KEY: "token"})) == [UNKNOWN_KEY]


def test_no_signature_and_one_that_cannot_be_read():
    assert kinds(found([("Host", HOST)])) == [MISSING]
    for value in ("", "Bearer x", "AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request, SignedHeaders=host, Signature=00"):
        assert kinds(found(replaced(signed(), "Authorization", value))) == [MALFORMED], value


def test_another_key_secret_region_or_service():
    assert kinds(found(signed(key="OTHER"))) == [UNKNOWN_KEY]
    assert "another secret" in found(signed(secret="other"))[0].text
    assert kinds(found(signed(), region="us-east-1")) == [SCOPE]
    assert kinds(found(signed(), service="dynamodb")) == [SCOPE]


@pytest.mark.parametrize("seconds", [301, -301, 1200, 30 * 86400])
def test_a_time_too_far_from_the_services(seconds):
    assert kinds(found(signed(), now=NOW.timestamp() + seconds)) == [EXPIRED]
    assert found(signed(), now=None) == []


def test_a_date_that_is_none_or_of_another_day():
    assert MALFORMED in kinds(found(replaced(signed(), "X-Amz-Date", "yesterday")))
    assert SCOPE in kinds(found(replaced(signed(), "X-Amz-Date", "20260301T000001Z")))


@pytest.mark.parametrize("name", ["Connection", "Expect", "Transfer-Encoding", "User-Agent", "Via", "X-Forwarded-For",
                                  "X-Forwarded-Proto", "Content-Length", "Proxy-Authorization", "X-Amzn-Trace-Id"])
def test_a_signed_header_of_a_hop(name):
    findings = found(signed(headers={name: "x"}))
    assert kinds(findings) == [HOP_HEADER]
    assert name.lower() in findings[0].text


def test_a_body_that_was_altered():
    assert kinds(found(signed(), body=BODY_BYTES + b" ")) == [MISMATCH]
    in_chunks = b"38\r\n" + BODY_BYTES + b"\r\n0\r\n\r\n"
    assert kinds(found(signed(), body=in_chunks)) == [MISMATCH]
    assert "empty" in found(signed(body=b""))[0].text
    said = signed(headers={"X-Amz-Content-Sha256": sigv4_verify.EMPTY}, body=b"")
    assert found(said, body=b"") == []
    assert BODY in kinds(found(said))


@pytest.mark.parametrize("arrived, sent", [("/a//b", "/a/b"), ("/a/../b", "/b"), ("/a/./b/", "/a/b/"),
                                           ("/a%2Fb", "/a/b"), ("/a", "/a/")])
def test_a_path_that_was_altered(arrived, sent):
    assert found(signed(sent), sent) == []
    if sigv4_verify.normal_path(arrived) == sent:
        assert found(signed(sent), arrived) == []   # the same to the service
    else:
        assert kinds(found(signed(sent), arrived)) == [MISMATCH]


def test_a_path_that_was_not_normalised_or_encoded_once_is_named():
    # aws_request signs a path as it is, encoded once more.
    assert "not normalised" in found(signed("/a//b"), "/a//b")[0].text
    by_s3s_rules = signed("/a b".replace(" ", "%20"))
    claim = sigv4_verify.read_authorization(dict(by_s3s_rules)["Authorization"])
    wrong = sigv4_verify._Request("POST", "/a%20b", by_s3s_rules, BODY_BYTES).signature(
        claim, aws_request.SECRET, path="/a%20b")
    headers = replaced(by_s3s_rules, "Authorization",
                       dict(by_s3s_rules)["Authorization"].replace(claim.signature, wrong))
    assert "encoded once" in found(headers, "/a%20b")[0].text


def test_a_query_that_was_altered():
    assert kinds(found(signed("/?a=1"), "/?a=2")) == [MISMATCH]
    assert kinds(found(signed("/?a=1"), "/")) == [MISMATCH]
    assert found(signed("/?a=1&b=2"), "/?b=2&a=1") == []   # the same to the service
    assert "query not signed" in found(signed("/"), "/?a=1")[0].text


def test_a_header_that_was_altered_dropped_or_doubled():
    assert kinds(found(replaced(signed(), "Content-Type", "text/plain"))) == [MISMATCH]
    dropped = [(n, v) for n, v in signed() if n != "Content-Type"]
    assert "content-type is signed and not there" in found(dropped)[0].text
    assert found(replaced(signed(), "Content-Type", "  application/x-amz-json-1.0 ")) == []


@pytest.mark.parametrize("name", ["Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"])
def test_what_a_client_signed_with_was_passed_on(name):
    headers = [*signed(headers={"X-Amz-Security-Token": "token", "X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD"}),
               (name, "the client's")]
    findings = found(headers, tokens={aws_request.KEY: "token"})
    assert PASSED_ON in kinds(findings)
    assert any(name.lower() in finding.text for finding in findings)


def test_an_unsigned_x_amz_header_and_a_clients_key():
    assert kinds(found([*signed(), ("X-Amz-User", "x")])) == [PASSED_ON]
    assert PASSED_ON in kinds(found(signed(), client_keys={aws_request.KEY}))


def test_host_must_be_signed():
    value = dict(signed())["Authorization"].replace("content-type;host;", "content-type;")
    findings = found(replaced(signed(), "Authorization", value))
    assert MALFORMED in kinds(findings)
    assert "host is signed, and not named" in findings[-1].text


def test_s3s_rules():
    def judge(headers, target):
        return found(headers, target, b"", service="s3")

    def s3(target, **headers):
        return signed(target, b"", "s3", {"X-Amz-Content-Sha256": sigv4_verify.EMPTY, **headers})
    assert judge(s3("/a//b/./c"), "/a//b/./c") == []
    assert MISMATCH in kinds(judge(s3("/a/b"), "/a//b"))
    assert MALFORMED in kinds(judge(signed("/a", b"", "s3"), "/a"))
