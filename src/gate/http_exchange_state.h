// ExchangeState: what a Downstream knows of the one request it serves and of its answer. A plain
// value: each request begins with a fresh one, so that nothing of the request before is left. Not
// the connection's: that stays in Downstream.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace leasehold::gate {

struct ExchangeState {
  // ---- the request ----
  bool has_head = false;           // its head is complete and right
  bool head_due = false;           // the head has not been sent on
  bool request_done = false;       // all of it has been parsed and sent on
  bool body_begun = false;         // something of the body, or its end, was sent on
  bool awaiting_continue = false;  // Expect: 100-continue, and no answer yet
  bool upgrade = false;            // it asks for an upgrade that we let through
  bool retried = false;
  uint64_t sequence = 0;   // Lease-Sequence; 0: none was given
  base::MonoTime started;  // when the head was complete

  // ---- the answer ----
  bool interim = false;       // the head in the response parser is a 1xx
  bool answer_begun = false;  // bytes of the final answer went to the client
  bool chunk_answer = false;  // its body goes to the client in chunks
  bool close_after = false;   // Connection: close was said
  bool counted = false;       // it is counted
  int status = 0;

  // ---- between two sidecars ----
  // Forwarded to the holder's gate; of what follows only then: it is the probe of its route, it
  // asks for its admission to be said.
  bool forwarded = false;
  bool probe = false;
  bool say = false;
  bool peer_admitted = false;     // by whom it was sent to last
  uint8_t lost_admissions = 0;    // how often it was admitted and then given up by a peer
  uint64_t route_generation = 0;  // of whom it was sent to
  uint64_t pool_generation = 0;
  // Toward a peer: nothing but the head goes before it said the admission. From a peer: nothing
  // goes to the application before something followed the head, which proves that the peer knows
  // of its admission, and so will not send the request again.
  bool commit_due = false;
  // From a peer: that something was the end of its chunked body, which so is empty.
  bool emptied = false;
  // Toward a peer: it was admitted with Expect: 100-continue, and so its head alone may have made
  // the application act.
  bool head_passed = false;
  // Toward a peer: when a sign of life must have come. From a peer: when one is to be given.
  base::MonoTime sign_at = base::MonoTime::Never();
};

}  // namespace leasehold::gate
