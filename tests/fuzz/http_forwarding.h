// What the http gate makes of a request on its way: Forwarder sends parsed requests on with the
// gate's own rewriting (gate/http_headers.h, gate/http_outgoing.h) into a string, and the checks
// say of what came in and what went out, as the reference reader sees both, that the rewriting kept
// its promises. Known separately from the product's tables: names are folded and listed anew here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/http1_trace.h"
#include "fuzz/http_reference.h"
#include "gate/http_headers.h"
#include "proto/http1.h"

namespace leasehold::fuzz {

inline constexpr std::string_view kClient = "192.0.2.9";
inline constexpr std::string_view kHello = "1 gate=web to=holder from=standby";
inline constexpr std::string_view kLeaseFields =
    "Lease-Fencing-Token: 7\r\nLease-Holder: node/process\r\nLease-Name: orders\r\n";
inline constexpr std::string_view kDefaultHost = "app.test:8000";

// From where to where: client to application, client to the holder's gate, there to application.
enum class Hop { kDirect, kToPeer, kFromPeer };

class Forwarder {
 public:
  explicit Forwarder(Hop hop) : hop_(hop) {}
  // A complete request of `parser`, whose body `message` collected, as the gate would send it on.
  void Send(const proto::http1::RequestParser& parser, const TracedMessage& message);
  const std::string& bytes() const { return bytes_; }
  size_t count() const { return count_; }

 private:
  gate::BodyRewrite Rewrite(const proto::http1::RequestParser& parser,
                            const TracedMessage& message) const;

  const Hop hop_;
  std::string bytes_;
  size_t count_ = 0;
};

// Is the target of `to` that of `from` in origin-form (or "*")?
bool SameTarget(const RefMessage& from, const RefMessage& to);
bool IsIdempotent(std::string_view method);

// What must be on a request that was sent on.
struct Stamp {
  bool via = true;        // to the application: Via and Lease-*; else the greeting of a peer
  bool two_hops = false;  // X-Forwarded-* were written by the first
  uint64_t sequence = 0;
};
void CheckStamp(const RefMessage& to, const Stamp& stamp);

// A request to the application or to the holder's gate; an answer to a client or to a sidecar.
enum class PassedOn { kToApplication, kToPeer, kToClient, kToPeerBack };
// Fields that are nobody's business between the two go on unchanged and in order, and so do
// trailers that may pass, if the body goes on in chunks.
void CheckPassedOn(const RefMessage& from, const RefMessage& to, PassedOn where,
                   bool chunked = true);
// Nothing of one hop is on the next.
void CheckHopByHop(const RefMessage& from, const RefMessage& to);
// X-Forwarded-*: the client is named last in one field, the rest said once.
void CheckForwardedFields(const RefMessage& from, const RefMessage& to);

// One field in `to` of exactly this name and value, and none that would fold to the same name.
void CheckOnce(const RefMessage& to, std::string_view name, std::string_view value);
// No field folds to this name (lower case, with '-').
void CheckNone(const RefMessage& to, std::string_view name);

}  // namespace leasehold::fuzz
