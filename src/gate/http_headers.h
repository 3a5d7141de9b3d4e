// Rewriting of HTTP heads between client and application, or client, two sidecars and application,
// in one pass over what the parser recognised: hop-by-hop headers go, ours come. Pure; appends to
// strings the gate reuses. Not here: framing decisions and connection state, which the caller
// passes in. Invariants: no Lease-* header or trailer of a client reaches the application, in any
// spelling; Lease-Peer is never passed on from anybody; one Via of ours is in a request and in an
// answer, whether one sidecar carried it or two.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/http1.h"

namespace leasehold::gate {

// How the body of a request leaves.
enum class BodyRewrite : uint8_t {
  kKeep,     // framed as it came
  kChunked,  // there is none, and the end of none is sent apart from the head
  kEmpty,    // it came in chunks and turned out to be empty
};

// What a request gets on its way to the application, or to the holder's gate.
struct ForwardContext {
  std::string_view client;        // address without port, or "unix"; "" from another sidecar, whose
                                  // X-Forwarded-* are believed as they are
  std::string_view lease_fields;  // LeaseFields()
  uint64_t sequence = 0;          // Lease-Sequence: order of requests inside one token
  std::string_view default_host;  // for HTTP/1.0 without Host
  bool upgrade = false;           // keep Upgrade
  BodyRewrite body = BodyRewrite::kKeep;
  std::string_view peer_hello;  // to the holder's gate: no Lease-* and no Via, but this
  bool say = false;             // and its request to say the admission
};
void AppendRequestHead(std::string& out, const proto::http1::RequestHead& head,
                       const ForwardContext& context);

// What heads may be at the second of two sidecars, if they may be `limits` at the first: what is
// just small enough for one is so for both.
proto::http1::Limits WithPeerRoom(proto::http1::Limits limits);

// What an answer gets on its way to the client.
struct AnswerContext {
  bool chunked = false;        // the body goes on in chunks
  bool close = false;          // this is the connection's last answer
  bool keep_alive_10 = false;  // an HTTP/1.0 client that asked to be kept
  bool upgrade = false;        // a 101
  std::string_view peer_mark;  // to another sidecar: Lease-Peer, and its Via instead of ours
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
