// Answers that a gate gives by itself: problem+json (RFC 9457) saying what happened, with the lease
// and its state, so that whoever reads it knows whether to try elsewhere. Pure; appends to strings
// the gate reuses.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::gate {

struct Problem {
  int status = 503;
  std::string_view type;    // word: becomes "urn:leasehold:problem:<type>"
  std::string_view detail;  // one sentence
  std::string_view lease;
  std::string_view state;
  bool close = true;
  bool head_only = false;      // the answer to HEAD
  bool keep_alive_10 = false;  // an HTTP/1.0 client that asked to be kept
  std::string_view peer_mark;  // to another sidecar: Lease-Peer (peer_hello.h)
};

// Appends head and body to `out`; `body` is scratch.
void AppendProblem(std::string& out, std::string& body, const Problem& problem);

}  // namespace leasehold::gate
