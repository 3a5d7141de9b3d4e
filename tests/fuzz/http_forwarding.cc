#include "fuzz/http_forwarding.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/string_stream.h"
#include "gate/http_outgoing.h"

namespace leasehold::fuzz {
namespace {

using gate::BodyRewrite;
using proto::http1::Framing;
using proto::http1::RequestHead;

bool OneOf(std::string_view text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

// Of one hop (RFC 9110 7.6.1), or written anew at each.
bool IsOfTheHop(const std::string& lower) {
  return OneOf(lower, {"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding",
                       "upgrade", "host", "content-length", "expect"});
}

bool IsLease(const std::string& folded) {
  return OneOf(folded, {"lease-fencing-token", "lease-holder", "lease-name", "lease-sequence",
                        "lease-peer"});
}

bool IsForwarded(const std::string& folded) {
  return OneOf(folded, {"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"});
}

std::vector<std::string> NamedInConnection(const RefMessage& message) {
  std::vector<std::string> names;
  for (const RefField& field : message.fields) {
    if (LowerCase(field.name) != "connection") continue;
    for (std::string& token : ListTokens(field.value)) names.push_back(std::move(token));
  }
  return names;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What a sender may not take away by naming it in Connection: others rely on it.
bool IsSure(const std::string& lower) { return OneOf(lower, {"via", "trailer"}); }

// The fields of `message` that are to be passed on as they are. An answer may say Lease-*, but for
// the words between sidecars; X-Forwarded-* are fields like others there.
std::vector<RefField> PlainFields(const RefMessage& message, bool of_request,
                                  const std::vector<std::string>& named) {
  std::vector<RefField> plain;
  for (const RefField& field : message.fields) {
    const std::string lower = LowerCase(field.name);
    const std::string folded = FoldName(field.name);
    const bool request_only = IsLease(folded) || IsForwarded(folded);
    if (of_request
            ? IsOfTheHop(lower) || request_only
            : (IsOfTheHop(lower) && !OneOf(lower, {"host", "expect"})) || folded == "lease-peer") {
      continue;
    }
    const bool recognised = IsSure(lower) || request_only || OneOf(lower, {"host", "expect"});
    if (Has(named, lower) && !recognised) continue;
    plain.push_back(field);
  }
  return plain;
}

bool MayTrail(const RefField& field, bool of_request) {
  const std::string lower = LowerCase(field.name);
  const std::string folded = FoldName(field.name);
  if (!of_request && IsLease(folded) && folded != "lease-peer") return true;
  return !IsOfTheHop(lower) && !IsLease(folded) && !IsForwarded(folded) && !IsSure(lower);
}

}  // namespace

bool IsIdempotent(std::string_view method) {
  return OneOf(method, {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"});
}

bool SameTarget(const RefMessage& from, const RefMessage& to) {
  if (from.target.front() == '/' || from.target == "*") return to.target == from.target;
  const size_t scheme = from.target.find("://");
  if (scheme == std::string::npos) return false;
  const size_t path = from.target.find_first_of("/?", scheme + 3);
  const std::string rest = path == std::string::npos ? "" : from.target.substr(path);
  if (rest.empty()) return to.target == (to.method == "OPTIONS" ? "*" : "/");
  return to.target == (rest.front() == '/' ? rest : "/" + rest);
}

// As Downstream::Rewrite and AddRequestEnd decide.
BodyRewrite Forwarder::Rewrite(const proto::http1::RequestParser& parser,
                               const TracedMessage& message) const {
  const RequestHead& head = parser.head();
  if (hop_ == Hop::kToPeer && head.framing == Framing::kNone && !IsIdempotent(head.method)) {
    return BodyRewrite::kChunked;
  }
  const bool emptied = hop_ == Hop::kFromPeer && head.framing == Framing::kChunked &&
                       message.body.empty() && message.trailers.empty();
  return emptied ? BodyRewrite::kEmpty : BodyRewrite::kKeep;
}

void Forwarder::Send(const proto::http1::RequestParser& parser, const TracedMessage& message) {
  const RequestHead& head = parser.head();
  const BodyRewrite body = Rewrite(parser, message);
  gate::ForwardContext context;
  if (hop_ != Hop::kFromPeer) context.client = kClient;
  context.lease_fields = kLeaseFields;
  context.sequence = ++count_;
  context.default_host = kDefaultHost;
  context.body = body;
  context.upgrade = head.upgrade && head.framing == Framing::kNone && body == BodyRewrite::kKeep &&
                    LowerCase(head.Find("upgrade")).find("h2c") == std::string::npos;
  if (hop_ == Hop::kToPeer) {
    context.peer_hello = kHello;
    context.say = count_ % 2 == 0;
  }
  std::string text;
  gate::AppendRequestHead(text, head, context);
  StringStream stream(bytes_);
  uint64_t counter = 0;
  gate::Outgoing out(stream, counter);
  out.AddHead(text);
  const bool chunked = head.framing == Framing::kChunked || body == BodyRewrite::kChunked;
  // In pieces, with a flush between some, as they would have arrived.
  const std::string_view bytes = message.body;
  for (Splitter pieces(bytes, 2); !pieces.done();) {
    const std::string_view piece = pieces.Next();
    out.AddBody(piece, chunked);
    if (piece.size() > 8) out.Flush();
  }
  std::string end;
  if (chunked && body != BodyRewrite::kEmpty) {
    gate::AppendChunkedEnd(end, parser.trailers(), true);
    out.AddChunkedEnd(end);
  }
  out.Flush();
}

void CheckOnce(const RefMessage& to, std::string_view name, std::string_view value) {
  size_t count = 0;
  for (const RefField& field : to.fields) {
    if (FoldName(field.name) != LowerCase(name)) continue;
    ++count;
    CHECK(field.name == name, "a field of ours is there in another spelling");
    CHECK(field.value == value, "a field of ours has another value");
  }
  CHECK(count == 1, "a field of ours is not there exactly once");
}

void CheckNone(const RefMessage& to, std::string_view name) {
  for (const std::vector<RefField>* fields : {&to.fields, &to.trailers}) {
    for (const RefField& field : *fields) {
      CHECK(FoldName(field.name) != name, "a field that is not to pass has passed");
    }
  }
}

void CheckStamp(const RefMessage& to, const Stamp& stamp) {
  if (!stamp.via) {
    const bool say = stamp.sequence % 2 == 0;
    CheckOnce(to, "Lease-Peer", std::string(kHello) + (say ? " say" : ""));
    for (const char* name :
         {"lease-fencing-token", "lease-holder", "lease-name", "lease-sequence"}) {
      CheckNone(to, name);
    }
    return;
  }
  CheckNone(to, "lease-peer");
  CheckOnce(to, "Lease-Fencing-Token", "7");
  CheckOnce(to, "Lease-Holder", "node/process");
  CheckOnce(to, "Lease-Name", "orders");
  CheckOnce(to, "Lease-Sequence", std::to_string(stamp.sequence));
  for (const RefField& trailer : to.trailers) {
    CHECK(!IsLease(FoldName(trailer.name)), "a client's Lease-* passes in a trailer");
  }
}

void CheckPassedOn(const RefMessage& from, const RefMessage& to, PassedOn where, bool chunked) {
  const bool of_request = where == PassedOn::kToApplication || where == PassedOn::kToPeer;
  const bool via = where == PassedOn::kToApplication || where == PassedOn::kToClient;
  std::vector<RefField> expected = PlainFields(from, of_request, NamedInConnection(from));
  if (via) expected.push_back({"Via", "1.1 leasehold"});
  CHECK(PlainFields(to, of_request, {}) == expected,
        "what is to be passed on is not passed on as it is");
  std::vector<RefField> trailers;
  for (const RefField& field : from.trailers) {
    if (chunked && MayTrail(field, of_request)) trailers.push_back(field);
  }
  CHECK(to.trailers == trailers, "trailers that may pass are not passed on as they are");
}

void CheckHopByHop(const RefMessage& from, const RefMessage& to) {
  CHECK(to.Count("keep-alive") == 0, "Keep-Alive passed");
  CHECK(to.Count("proxy-connection") == 0, "Proxy-Connection passed");
  std::string connection;
  std::string te;
  const size_t connections = to.Count("connection", &connection);
  const size_t tes = to.Count("te", &te);
  const size_t upgrades = to.Count("upgrade");
  CHECK(connections <= 1 && tes <= 1, "Connection or TE is there twice");
  CHECK((upgrades > 0) == (connection == "Upgrade"), "Upgrade and Connection do not go together");
  CHECK((tes > 0) == (connection == "TE"), "TE and Connection do not go together");
  CHECK(te.empty() || te == "trailers", "TE says more than trailers");
  CHECK(upgrades == 0 || from.Count("upgrade") > 0, "an upgrade nobody asked for");
  std::string expect;
  const bool expects = from.Count("expect", &expect) > 0 && from.minor == 1;
  CHECK((to.Count("expect") > 0) == expects, "the expectation is lost, or invented");
}

void CheckForwardedFields(const RefMessage& from, const RefMessage& to) {
  std::string chain;
  for (const RefField& field : from.fields) {
    if (LowerCase(field.name) == "x-forwarded-for" && !field.value.empty()) {
      chain += field.value + ", ";
    }
  }
  CheckOnce(to, "X-Forwarded-For", chain + std::string(kClient));
  for (const char* name : {"x-forwarded-host", "x-forwarded-proto"}) {
    size_t count = 0;
    for (const RefField& field : to.fields) {
      if (FoldName(field.name) != name) continue;
      CHECK(LowerCase(field.name) == name, "a folded spelling of X-Forwarded-* passed");
      ++count;
    }
    std::string host;
    const bool no_host =
        FoldName(name) == "x-forwarded-host" && (from.Count("host", &host) == 0 || host.empty());
    CHECK(count == 1 || (count == 0 && no_host),
          "X-Forwarded-Host or -Proto is not there exactly once");
  }
}

}  // namespace leasehold::fuzz
