// Rewriting of HTTP heads between client and application, in one pass over what the parser
// recognised: hop-by-hop headers go, ours come. Pure; appends to strings the gate reuses. Not here:
// framing decisions and connection state, which the caller passes in. Invariant: no Lease-* header
// or trailer of a client reaches the application, in any spelling.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/http1.h"

namespace leasehold::gate {

// What a request gets on its way to the application.
struct ForwardContext {
  std::string_view client;        // address without port, or "unix"
  std::string_view lease_fields;  // LeaseFields()
  uint64_t sequence = 0;          // Lease-Sequence: order of requests inside one token
  std::string_view default_host;  // for HTTP/1.0 without Host
  bool upgrade = false;           // keep Upgrade
};
void AppendRequestHead(std::string& out, const proto::http1::RequestHead& head,
                       const ForwardContext& context);

// What an answer gets on its way to the client.
struct AnswerContext {
  bool chunked = false;        // the body goes on in chunks
  bool close = false;          // this is the connection's last answer
  bool keep_alive_10 = false;  // an HTTP/1.0 client that asked to be kept
  bool upgrade = false;        // a 101
};
void AppendResponseHead(std::string& out, const proto::http1::ResponseHead& head,
                        const AnswerContext& context);

// "0", the trailers that may pass, and the empty line. Framing, routing and connection fields never
// pass in trailers (RFC 9110 6.5.1); Lease-* not toward the application.
void AppendChunkedEnd(std::string& out, const std::vector<proto::http1::Header>& trailers,
                      bool toward_application);

// The constant part of what a term stamps on requests: Lease-Fencing-Token, Lease-Holder,
// Lease-Name.
std::string LeaseFields(uint64_t token, std::string_view node_id, std::string_view process_id,
                        std::string_view lease);

}  // namespace leasehold::gate
