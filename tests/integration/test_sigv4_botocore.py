"""Our signatures are those of botocore, on random requests: methods, odd paths and queries, doubled
headers with blanks in them, session tokens, unsigned payloads, S3 and others. Always the same requests,
and as many that no run had before: their seed is printed, and LEASEHOLD_SEED=N runs it again."""

import base64
import collections
import hashlib
import json
import os
import random
import subprocess
import sys
from urllib.parse import quote

import pytest
from harness import aws_tools
from harness.measured import measured
from harness.sidecar import binary

REQUESTS = 3000
FIXED_SEED = 20150830
FRESH_SEED = int(os.environ.get("LEASEHOLD_SEED") or random.SystemRandom().randrange(10 ** 9))

UNRESERVED = "-_.~"
TEXT = "abcXYZ019-_.~ /?&=+%:;,@!$'()*\"<>[]{}|\\^`#\täßሴ😀\x7f\x01"
# Of which none may change a signature.
HOPS = ["Connection", "Expect", "Transfer-Encoding", "User-Agent", "Via", "X-Forwarded-For", "X-Forwarded-Proto",
        "Content-Length", "X-Amzn-Trace-Id", "Accept-Encoding", "Keep-Alive", "TE", "Proxy-Authorization",
        "traceparent", "Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"]
SIGNED = ["Content-Type", "Content-MD5", "X-Amz-Target", "X-Amz-Meta-A", "x-amz-meta-b", "X-AMZ-ACL", "My-Header1",
          "Range", "If-Match", "A", "a-b", "X-Amzn-Query-Mode"]


class Draw:
    """One random request, as both signers are told it."""

    def __init__(self, rng):
        self.rng = rng

    def text(self, longest, alphabet=TEXT):
        return "".join(self.rng.choice(alphabet) for _ in range(self.rng.randint(0, longest)))

    def respelled(self, text, keep):
        """`text` percent-encoded, in one of the ways that mean the same."""
        out = []
        for byte in text.encode():
            char = chr(byte)
            plain = byte < 128 and (char.isalnum() or char in UNRESERVED + keep)
            if plain and self.rng.random() < 0.95 or plain and char in keep:
                out.append(char)
            else:
                triple = f"%{byte:02x}"
                out.append(triple if self.rng.random() < 0.5 else triple.upper())
        return "".join(out)

    def wire_path(self):
        """For all but S3: any path that a request line can have; it is signed as it stands, normalised."""
        alphabet = "abXY09-_.~:;,@!$'()*+=&%"
        segments = [self.rng.choice(["", ".", "..", "...", "a", "%2e%2e", "%2F", "orders", "%C3%A4", "%c3%a4",
                                     self.text(6, alphabet)]) for _ in range(self.rng.randint(0, 6))]
        return "/" + "/".join(segments)

    def pairs(self):
        names = [self.text(4) for _ in range(3)]
        return [[self.rng.choice(names), self.text(5)] for _ in range(self.rng.randint(0, 5))]

    def wire_query(self, pairs):
        parameters = []
        for name, value in pairs:
            encoded = self.respelled(name, ""), self.respelled(value, "")
            if self.rng.random() < 0.3:
                encoded = tuple(part.replace("%20", "+") for part in encoded)
            without = not value and name and self.rng.random() < 0.5
            parameters.append(encoded[0] if without else "=".join(encoded))
        return "&".join(parameters)

    def value(self):
        words = [self.text(5, "abcXYZ019-_.~/?&=+%:;,@\"äሴ") for _ in range(self.rng.randint(0, 4))]
        blanks = [" ", "  ", "\t", " \t ", ""]
        return self.rng.choice(blanks) + "".join(word + self.rng.choice(blanks) for word in words)

    def cased(self, name):
        return self.rng.choice([name, name.lower(), name.upper()])

    def request(self):
        """(for ours, for botocore)"""
        rng = self.rng
        s3 = rng.random() < 0.4
        key = self.text(12)
        path = "/" + quote(key, safe="/" + UNRESERVED) if s3 else self.wire_path()
        pairs = self.pairs()
        as_pairs = rng.random() < 0.7
        canonical = "&".join("=".join(quote(part, safe=UNRESERVED) for part in pair) for pair in pairs)
        host = rng.choice(["sqs.eu-central-1.amazonaws.com", "127.0.0.1:4566", "[::1]:8000", "b.s3.amazonaws.com"])
        headers = [[self.cased("Host"), host]] + [[self.cased(rng.choice(SIGNED)), self.value()]
                                                  for _ in range(rng.randint(0, 6))]
        rng.shuffle(headers)
        hops = [[self.cased(name), self.value()] for name in rng.sample(HOPS, rng.randint(0, 4))]
        mixed = headers + hops if rng.random() < 0.5 else hops + headers
        body = rng.randbytes(rng.choice([0, 0, 1, 100]))
        sign_payload = rng.random() < 0.8
        common = {
            "method": rng.choice(["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"]), "s3": s3,
            "region": rng.choice(["us-east-1", "eu-central-1", "cn-north-1", "us-gov-west-1"]),
            "service": "s3" if s3 else rng.choice(["sqs", "dynamodb", "sts", "execute-api"]),
            "key": self.text(20, "ABCDEFGH0123") or "A", "secret": self.text(40, "abcXYZ019+/=") or "s",
            "token": rng.choice(["", self.text(60, "abcXYZ019+/=")]), "time": rng.randrange(946684800, 4102444800)}
        ours = {**common, "path": self.respelled("/" + key, "/") if s3 else path, "headers": mixed,
                "query": self.wire_query(pairs) if as_pairs else canonical,
                "payload": hashlib.sha256(body).hexdigest() if sign_payload else "UNSIGNED-PAYLOAD"}
        theirs = {**common, "path": path, "headers": headers, "host": host, "body": base64.b64encode(body).decode(),
                  "query": "" if as_pairs else canonical, "pairs": pairs if as_pairs else None,
                  "sign_payload": sign_payload}
        return ours, theirs


def answers(argv, told, **environment):
    done = subprocess.run(argv, input="".join(json.dumps(each) + "\n" for each in told), text=True, encoding="utf-8",
                          stdout=subprocess.PIPE, check=True, timeout=300, env={**os.environ, **environment})
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(told)
    return lines


def our_signer():
    path = os.path.join(os.path.dirname(binary()), "tests", "sigv4_sign")
    if not os.access(path, os.X_OK):
        raise AssertionError(f"the program {path} is missing; build it with: cmake --build build --target sigv4_sign")
    return [path]


def their_answers(told):
    script = os.path.join(os.path.dirname(__file__), "harness", "botocore_sign.py")
    return answers([sys.executable, script], told, PYTHONPATH=str(aws_tools.TOOLS / "python"))


def by_name(added):
    return {name.lower(): value for name, value in added}


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH_SEED], ids=["fixed", "fresh"])
def test_signatures_are_those_of_botocore(seed):
    draw = Draw(random.Random(seed))
    requests = [draw.request() for _ in range(REQUESTS)]
    ours = answers(our_signer(), [request[0] for request in requests])
    theirs = their_answers([request[1] for request in requests])
    for (told, _), our, their in zip(requests, ours, theirs):
        assert by_name(our["added"]) == by_name(their["added"]), \
            f"seed {seed}: {told}\nours:\n{our['canonical']}\nbotocore's:\n{their['canonical']}"
        assert our["canonical"] == their["canonical"]
    what = collections.Counter()
    for told, _ in requests:
        what.update(s3=told["s3"], token=bool(told["token"]), query=bool(told["query"]),
                    doubled=len({name.lower() for name, _ in told["headers"]}) < len(told["headers"]))
    assert min(what.values()) > REQUESTS / 20, what   # each kind was compared
    measured(f"signatures: {REQUESTS} requests of seed {seed} as botocore signs them ({dict(what)})")


def test_a_difference_would_be_seen():
    ours, theirs = Draw(random.Random(1)).request()
    wrong = {**ours, "secret": ours["secret"] + "x"}
    assert by_name(answers(our_signer(), [wrong])[0]["added"]) != by_name(their_answers([theirs])[0]["added"])
