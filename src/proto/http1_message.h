// HTTP/1 heads as the parsers of http1.h give them: views of what was received, and what was
// understood of it. Values only; views live until the parser's next message begins.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace leasehold::proto::http1 {

// Headers that framing, forwarding and gates care about, recognised once while parsing. Names of
// Lease-* and X-Forwarded-* are also recognised with any other sign for '-': CGI-style servers fold
// '_', and some '.' and the rest, into one variable, so "Lease_Fencing.Token" would forge ours
// there.
enum class HeaderId : uint8_t {
  kOther,
  kConnection,
  kContentLength,
  kExpect,
  kHost,
  kKeepAlive,
  kLease,      // any of Lease-Fencing-Token, Lease-Holder, Lease-Name, Lease-Sequence
  kLeasePeer,  // Lease-Peer: between two sidecars only
  kProxyConnection,
  kTe,
  kTrailer,
  kTransferEncoding,
  kUpgrade,
  kVia,
  kXForwardedFor,
  kXForwardedHost,
  kXForwardedProto,
};
HeaderId ClassifyHeader(std::string_view name);

struct Header {
  std::string_view name;
  std::string_view value;  // blanks off both ends
  HeaderId id = HeaderId::kOther;
};

// How the length of a body is known.
enum class Framing : uint8_t {
  kNone,
  kLength,
  kChunked,
  kUntilClose,  // responses only
};

struct HeadCommon {
  int version_minor = 1;  // HTTP/1.0 or HTTP/1.1
  std::vector<Header> headers;
  Framing framing = Framing::kNone;
  uint64_t content_length = 0;  // of kLength; for an answer to HEAD what was announced
  bool has_content_length = false;
  bool keep_alive = true;  // by version and Connection
  bool connection_names =
      false;                    // Connection names headers other than close, keep-alive and upgrade
  bool upgrade = false;         // Upgrade header and "upgrade" in Connection, on 1.1
  int lease_peers = 0;          // how many Lease-Peer headers there are
  std::string_view lease_peer;  // value of the last of them
  // First value of a header, case-insensitively; empty when absent.
  std::string_view Find(std::string_view name) const;
  // Is this header named in a Connection header (hop-by-hop by the sender's word)?
  bool NamedInConnection(std::string_view name) const;
};

struct RequestHead : HeadCommon {
  std::string_view method;
  std::string_view target;  // as sent: origin-form, absolute-form or "*"
  // The target without scheme and authority; may begin with "?" or be empty after an absolute-form.
  std::string_view origin;
  // Whom the request is for: of an absolute-form target, else the Host header; empty when neither
  // is there (HTTP/1.0).
  std::string_view host;
  bool is_head = false;     // HEAD: the answer has no body
  bool idempotent = false;  // GET, HEAD, OPTIONS, TRACE, PUT, DELETE (RFC 9110 9.2.2)
  bool expect_continue = false;
};

struct ResponseHead : HeadCommon {
  int status = 0;           // 100..999
  std::string_view reason;  // may be empty
  bool interim() const { return status < 200 && status != 101; }
};

}  // namespace leasehold::proto::http1
