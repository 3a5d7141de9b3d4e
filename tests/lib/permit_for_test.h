// PermitForTest: a Permit whose state a test chooses. The engine is the only writer in the program;
// a gate's test needs the same states without running an engine.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "lease/permit.h"

namespace leasehold::lease {

struct PermitForTest {
  Permit permit;

  void Set(Valve valve, base::MonoTime expiry, uint64_t token = 1) {
    permit.valve_ = valve;
    permit.expiry_ = expiry;
    permit.token_ = token;
  }
  void Open(base::MonoTime expiry = base::MonoTime::Never(), uint64_t token = 1) {
    Set(Valve::kOpen, expiry, token);
  }
  void Close() { permit.valve_ = Valve::kClosed; }
  // Runs out at `expiry`, although nobody tells the gate.
  void ExpireAt(base::MonoTime expiry) { permit.expiry_ = expiry; }
};

}  // namespace leasehold::lease
