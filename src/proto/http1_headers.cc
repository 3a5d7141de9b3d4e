// Recognising headers, and what a Connection header says.
#include <algorithm>

#include "proto/http1.h"

namespace leasehold::proto::http1 {
namespace {

char Lower(char c) { return (c >= 'A' && c <= 'Z') ? static_cast<char>(c | 0x20) : c; }

// `lower` is in lower case.
bool Is(std::string_view name, std::string_view lower) {
  return std::equal(name.begin(), name.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return Lower(a) == b; });
}

// The same, with every sign taken for '-'.
bool IsFolded(std::string_view name, std::string_view lower) {
  return std::equal(name.begin(), name.end(), lower.begin(), lower.end(), [](char a, char b) {
    const char c = Lower(a);
    return (b == '-' && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9')) || c == b;
  });
}

HeaderId Pick(bool yes, HeaderId id) { return yes ? id : HeaderId::kOther; }

HeaderId ClassifyShort(std::string_view name) {
  switch (name.size()) {
    case 2: return Pick(Is(name, "te"), HeaderId::kTe);
    case 3: return Pick(Is(name, "via"), HeaderId::kVia);
    case 4: return Pick(Is(name, "host"), HeaderId::kHost);
    case 6: return Pick(Is(name, "expect"), HeaderId::kExpect);
    case 7:
      if (Is(name, "upgrade")) return HeaderId::kUpgrade;
      return Pick(Is(name, "trailer"), HeaderId::kTrailer);
    default: return HeaderId::kOther;
  }
}

HeaderId ClassifyLong(std::string_view name) {
  switch (name.size()) {
    case 10:
      if (Is(name, "connection")) return HeaderId::kConnection;
      if (Is(name, "keep-alive")) return HeaderId::kKeepAlive;
      if (IsFolded(name, "lease-peer")) return HeaderId::kLeasePeer;
      return Pick(IsFolded(name, "lease-name"), HeaderId::kLease);
    case 12: return Pick(IsFolded(name, "lease-holder"), HeaderId::kLease);
    case 14:
      if (Is(name, "content-length")) return HeaderId::kContentLength;
      return Pick(IsFolded(name, "lease-sequence"), HeaderId::kLease);
    case 15: return Pick(IsFolded(name, "x-forwarded-for"), HeaderId::kXForwardedFor);
    case 16:
      if (IsFolded(name, "x-forwarded-host")) return HeaderId::kXForwardedHost;
      return Pick(Is(name, "proxy-connection"), HeaderId::kProxyConnection);
    case 17:
      if (Is(name, "transfer-encoding")) return HeaderId::kTransferEncoding;
      return Pick(IsFolded(name, "x-forwarded-proto"), HeaderId::kXForwardedProto);
    case 19: return Pick(IsFolded(name, "lease-fencing-token"), HeaderId::kLease);
    default: return HeaderId::kOther;
  }
}

std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

// Calls `visit` for each token of a comma-separated list until it returns true; says whether one
// did.
template <typename Visit>
bool AnyToken(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view token = TrimBlanks(list.substr(0, comma));
    if (!token.empty() && visit(token)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

HeaderId ClassifyHeader(std::string_view name) {
  return name.size() < 10 ? ClassifyShort(name) : ClassifyLong(name);
}

std::string_view HeadCommon::Find(std::string_view name) const {
  for (const Header& header : headers) {
    if (SameName(header.name, name)) return header.value;
  }
  return {};
}

bool HeadCommon::NamedInConnection(std::string_view name) const {
  return std::any_of(headers.begin(), headers.end(), [name](const Header& header) {
    return header.id == HeaderId::kConnection &&
           AnyToken(header.value, [name](std::string_view token) { return SameName(token, name); });
  });
}

bool Parser::AcceptFields(HeadCommon& head) {
  bool close = false, keep = false, upgrade_token = false, upgrade_header = false;
  int lengths = 0, encodings = 0;
  std::string_view length, encoding;
  head.connection_names = false;
  head.lease_peers = 0;
  head.lease_peer = {};
  for (const Header& header : head.headers) {
    switch (header.id) {
      case HeaderId::kConnection:
        AnyToken(header.value, [&](std::string_view token) {
          if (Is(token, "close"))
            close = true;
          else if (Is(token, "keep-alive"))
            keep = true;
          else if (Is(token, "upgrade"))
            upgrade_token = true;
          else
            head.connection_names = true;
          return false;
        });
        break;
      case HeaderId::kLeasePeer: ++head.lease_peers, head.lease_peer = header.value; break;
      case HeaderId::kUpgrade: upgrade_header |= !header.value.empty(); break;
      case HeaderId::kContentLength: ++lengths, length = header.value; break;
      case HeaderId::kTransferEncoding: ++encodings, encoding = header.value; break;
      default: break;
    }
  }
  head.keep_alive = head.version_minor == 0 ? keep && !close : !close;
  head.upgrade = upgrade_token && upgrade_header && head.version_minor == 1;
  head.framing = Framing::kNone;
  head.content_length = 0;
  head.has_content_length = lengths > 0;
  if (lengths > 0 && encodings > 0) {
    return Fail(400, "Content-Length and Transfer-Encoding in one message; send one of them");
  }
  if (lengths > 1) return Fail(400, "more than one Content-Length; send it once");
  if (encodings > 1) return Fail(400, "more than one Transfer-Encoding; send it once");
  if (encodings == 1) {
    if (head.version_minor == 0) return Fail(400, "Transfer-Encoding does not exist in HTTP/1.0");
    if (!Is(encoding, "chunked")) {
      return Fail(501, "only \"Transfer-Encoding: chunked\" is understood");
    }
    head.framing = Framing::kChunked;
    return true;
  }
  if (lengths == 0) return true;
  // 18 digits fit 63 bits and are more than any disk holds.
  if (length.empty() || length.size() > 18) return Fail(400, "Content-Length is not a length");
  for (const char c : length) {
    if (c < '0' || c > '9') return Fail(400, "Content-Length must be decimal digits only");
    head.content_length = head.content_length * 10 + static_cast<uint64_t>(c - '0');
  }
  head.framing = head.content_length > 0 ? Framing::kLength : Framing::kNone;
  return true;
}

}  // namespace leasehold::proto::http1
