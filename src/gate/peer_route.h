// PeerRoute: may a request or connection be forwarded to the holder's gate now? Pure and without a
// clock: it learns from the record (Set) and from what became of what was sent (Admitted,
// NotAdmitted), and says who may go: nobody, one that asks for an admission to be said (a probe),
// or everybody. Owned by GateCore. Not here: connections, and whom to trust.
//
// A holder that was just seen in the record, or that did not admit, is probed by one; when that one
// is admitted, all go. So a stale record or a dead peer costs one attempt per pause, however many
// wait, and a peer that is not open yet is found open within a few milliseconds.
//
// Invariants: a verdict counts only for the peer it was about, and not if it was asked for before a
// doubt arose (its generation); at most one probe a pause; pauses double from kRetryMin to
// kRetryMax.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "gate/peer.h"

namespace leasehold::gate {

class PeerRoute {
 public:
  enum class Go : uint8_t {
    kNobody,
    kProbe,  // one; call ProbeSent() when it goes, and a verdict or ProbeDropped() when it is over
    kAll,
  };
  // A new holder's gate opens about when its record is seen: a few tries at once, then patience. A
  // tenth of the shortest hold-off at most, so that what is held meets the new holder soon.
  static constexpr base::Duration kRetryMin = base::Duration::Millis(2);
  static constexpr base::Duration kRetryMax = base::Duration::Millis(250);

  // What the record says now. True: another peer than before (other address, process or token), so
  // connections to the old one are of no more use.
  bool Set(const Peer& peer);
  const Peer& peer() const { return peer_; }
  bool known() const { return !peer_.address.empty(); }
  // Rises with each new peer and each new doubt: what was sent before says nothing of what comes
  // after. Kept by whoever sends, and given back with the verdict.
  uint64_t generation() const { return generation_; }

  Go MayGo(base::MonoTime now) const;
  // When MayGo may change by itself: Never() unless a pause is under way.
  base::MonoTime retry_at() const;
  void ProbeSent();
  // The probe ended before anything was learnt (its client left): another may go after the pause.
  // No sooner: the client may have been another sidecar's probe, and two that take each other for
  // the holder would hand it round for ever, each before it sees what it is.
  void ProbeDropped(uint64_t generation, base::MonoTime now);

  // It admitted (also: it answered anything but a refusal to admit). True: all go from now on, and
  // did not before.
  bool Admitted(uint64_t generation);
  // It did not admit, or could not be reached. True: news, worth a look at the record.
  bool NotAdmitted(uint64_t generation, base::MonoTime now);

 private:
  void Pause(base::MonoTime now);

  enum class State : uint8_t { kProven, kDoubtful, kProbing };
  Peer peer_;
  uint64_t generation_ = 0;
  State state_ = State::kDoubtful;
  base::Duration pause_ = kRetryMin;
  base::MonoTime retry_at_;  // of kDoubtful
};

}  // namespace leasehold::gate
