// Permit: the one variable in the process that says whether we may act, with which token, until
// when (DESIGN 2.4). The engine owns and writes it; gates, API, metrics and socket read it, always
// with a fresh clock reading (loop::Loop::Now), because an expiry timer alone is not a gate.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace leasehold::lease {

// What the engine last said of a gate's valve. kOpen and kDraining still end at expiry without
// further word.
enum class Valve {
  kClosed,    // nothing passes
  kHolding,   // what is in flight goes on; new work is queued, not refused (a renewal is being
              // confirmed)
  kOpen,      // admit
  kDraining,  // finish what is in flight, admit nothing new
};

class Permit {
 public:
  // May new work be admitted at `now`?
  bool MayAdmit(base::MonoTime now) const { return valve_ == Valve::kOpen && now < expiry_; }
  // May work already admitted go on (the next chunk, the next commit) at `now`?
  bool MayAct(base::MonoTime now) const { return valve_ != Valve::kClosed && now < expiry_; }
  Valve valve() const { return valve_; }
  uint64_t token() const {
    return token_;
  }  // of the current or, when closed, the last term; 0 = none yet
  base::MonoTime expiry() const { return expiry_; }  // meaningless while closed

 private:
  friend class Engine;
  friend struct PermitForTest;  // tests/lib/permit_for_test.h: a permit in a chosen state, for
                                // gates' tests
  Valve valve_ = Valve::kClosed;
  uint64_t token_ = 0;
  base::MonoTime expiry_;
};

}  // namespace leasehold::lease
