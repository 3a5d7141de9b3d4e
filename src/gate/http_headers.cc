#include "gate/http_headers.h"

#include <algorithm>

#include "base/text.h"
#include "gate/peer_hello.h"
#include "proto/http1_write.h"

namespace leasehold::gate {
namespace {

using proto::http1::AppendHeader;
using proto::http1::Framing;
using proto::http1::HeadCommon;
using proto::http1::Header;
using proto::http1::HeaderId;
using proto::http1::kCrlf;

// What a sender adds to a head, and a receiver to an answer's. At most nine fields (Host,
// X-Forwarded-*, Lease-Peer with its mac, framing, TE and Connection) of a few hundred bytes; the
// host once more, of at most a KiB (http1_heads.cc); and a blank after each colon that had none.
constexpr size_t kPeerHeadBytes = size_t{2} * 1024;
constexpr size_t kPeerHeaders = 16;

constexpr std::string_view kVia = "Via: 1.1 leasehold\r\n";

void Append(std::string& out, const Header& header) {
  AppendHeader(out, header.name, header.value);
}

// Headers that mean nothing beyond one hop, and those rewritten below.
bool IsHopByHop(HeaderId id) {
  switch (id) {
    case HeaderId::kLeasePeer:
    case HeaderId::kConnection:
    case HeaderId::kKeepAlive:
    case HeaderId::kProxyConnection:
    case HeaderId::kTe:
    case HeaderId::kTransferEncoding:
    case HeaderId::kUpgrade: return true;
    default: return false;
  }
}

// Only unknown headers are hop-by-hop on the sender's word: "Connection: Host" or
// "Connection: X-Forwarded-For" would otherwise strip what others rely on.
bool IsNamedHop(const HeadCommon& head, const Header& header) {
  return head.connection_names && header.id == HeaderId::kOther &&
         head.NamedInConnection(header.name);
}

void AppendTarget(std::string& out, const proto::http1::RequestHead& head) {
  if (head.origin.empty()) {  // absolute-form without a path
    out += head.method == "OPTIONS" ? "*" : "/";
    return;
  }
  if (head.origin.front() == '?') out += '/';
  out += head.origin;
}

struct Forwarded {  // what came in of the headers that are added to
  bool host = false;
  bool proto = false;
  bool trailers_welcome = false;
};

// A spelling with another sign than '-' is dropped: an application that folds them would see two.
bool IsFoldedSpelling(const Header& header) {
  return std::any_of(header.name.begin(), header.name.end(), [](char c) {
    return c != '-' && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z');
  });
}

// RFC 9110 8.6: none in these. A peer that believed it would take the next answer for a body.
bool MayHaveContentLength(int status) { return status >= 200 && status != 204; }

// X-Forwarded-Host or -Proto as a proxy before us, or the client, sent it: the first is kept.
void TakeForwarded(std::string& out, const Header& header, bool& taken) {
  if (taken || IsFoldedSpelling(header)) return;
  taken = true;
  Append(out, header);
}

// What came before us, in order, and then the client as we see it.
void AppendForwardedFor(std::string& out, const proto::http1::RequestHead& head,
                        std::string_view client) {
  out += "X-Forwarded-For: ";
  for (const Header& header : head.headers) {
    if (header.id != HeaderId::kXForwardedFor || header.value.empty() || IsFoldedSpelling(header)) {
      continue;
    }
    out.append(header.value).append(", ");
  }
  out.append(client).append(kCrlf);
}

void AppendStamp(std::string& out, const ForwardContext& context) {
  if (!context.peer_hello.empty()) {
    out.append(kPeerHeader).append(": ").append(context.peer_hello);
    if (context.say) out += kPeerSay;
    out += kCrlf;
    return;
  }
  out += kVia;
  out += context.lease_fields;
  AppendHeader(out, "Lease-Sequence", context.sequence);
}

void AppendFraming(std::string& out, Framing framing, BodyRewrite body) {
  if (body == BodyRewrite::kEmpty) {
    out += "Content-Length: 0\r\n";
  } else if (framing == Framing::kChunked || body == BodyRewrite::kChunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
}

void AppendOurs(std::string& out, const proto::http1::RequestHead& head,
                const ForwardContext& context, const Forwarded& seen) {
  if (!context.client.empty()) {
    AppendForwardedFor(out, head, context.client);
    if (!seen.proto) out += "X-Forwarded-Proto: http\r\n";
    if (!seen.host && !head.host.empty()) AppendHeader(out, "X-Forwarded-Host", head.host);
  }
  AppendStamp(out, context);
  AppendFraming(out, head.framing, context.body);
  if (context.upgrade) {
    AppendHeader(out, "Upgrade", head.Find("upgrade"));
    out += "Connection: Upgrade\r\n";
  } else if (seen.trailers_welcome) {
    out += "TE: trailers\r\nConnection: TE\r\n";
  }
  out += kCrlf;
}

std::string_view Printable(std::string_view text, std::string& scratch) {
  scratch.assign(text);
  for (char& c : scratch) {
    if (c < ' ' || c > '~') c = '?';
  }
  return scratch;
}

}  // namespace

void AppendRequestHead(std::string& out, const proto::http1::RequestHead& head,
                       const ForwardContext& context) {
  out += head.method;
  out += ' ';
  AppendTarget(out, head);
  out += " HTTP/1.1\r\n";
  AppendHeader(out, "Host", head.host.empty() ? context.default_host : head.host);
  Forwarded seen;
  for (const Header& header : head.headers) {
    switch (header.id) {
      case HeaderId::kHost:
      case HeaderId::kLease:
      case HeaderId::kLeasePeer: continue;
      case HeaderId::kContentLength:
        if (context.body == BodyRewrite::kKeep) {
          AppendHeader(out, "Content-Length", head.content_length);
        }
        continue;
      case HeaderId::kXForwardedFor:
        if (context.client.empty()) Append(out, header);  // else AppendForwardedFor
        continue;
      case HeaderId::kXForwardedHost: TakeForwarded(out, header, seen.host); continue;
      case HeaderId::kXForwardedProto: TakeForwarded(out, header, seen.proto); continue;
      case HeaderId::kTe:
        seen.trailers_welcome |= base::EqualsIgnoreCase(header.value, "trailers");
        continue;
      case HeaderId::kExpect:
        if (head.expect_continue) Append(out, header);
        continue;
      default: break;
    }
    if (!IsHopByHop(header.id) && !IsNamedHop(head, header)) Append(out, header);
  }
  AppendOurs(out, head, context, seen);
}

proto::http1::Limits WithPeerRoom(proto::http1::Limits limits) {
  limits.head_bytes_max += kPeerHeadBytes;
  limits.headers_max += kPeerHeaders;
  return limits;
}

void AppendResponseHead(std::string& out, const proto::http1::ResponseHead& head,
                        const AnswerContext& context) {
  proto::http1::AppendStatusLine(out, head.status, head.reason);
  for (const Header& header : head.headers) {
    if (context.upgrade && header.id == HeaderId::kUpgrade) {
      Append(out, header);
      continue;
    }
    if (header.id == HeaderId::kContentLength && !MayHaveContentLength(head.status)) continue;
    if (!IsHopByHop(header.id) && !IsNamedHop(head, header)) Append(out, header);
  }
  if (context.peer_mark.empty()) {
    out += kVia;
  } else {
    AppendHeader(out, kPeerHeader, context.peer_mark);
  }
  if (context.chunked) out += "Transfer-Encoding: chunked\r\n";
  if (context.upgrade) {
    out += "Connection: Upgrade\r\n";
  } else if (context.close) {
    out += "Connection: close\r\n";
  } else if (context.keep_alive_10) {
    out += "Connection: keep-alive\r\n";
  }
  out += kCrlf;
}

void AppendChunkedEnd(std::string& out, const std::vector<Header>& trailers,
                      bool toward_application) {
  out += "0\r\n";
  for (const Header& trailer : trailers) {
    const bool passes =
        trailer.id == HeaderId::kOther || (!toward_application && trailer.id == HeaderId::kLease);
    if (passes) Append(out, trailer);
  }
  out += kCrlf;
}

std::string LeaseFields(uint64_t token, std::string_view node_id, std::string_view process_id,
                        std::string_view lease) {
  std::string out;
  std::string scratch;
  AppendHeader(out, "Lease-Fencing-Token", token);
  out.append("Lease-Holder: ").append(Printable(node_id, scratch));
  out.append("/").append(Printable(process_id, scratch)).append(kCrlf);
  AppendHeader(out, "Lease-Name", Printable(lease, scratch));
  return out;
}

}  // namespace leasehold::gate
