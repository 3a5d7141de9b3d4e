// Register: the faulty compare-and-set store of a run: one record, a version that never repeats,
// spells in which it is away or refuses, and, where the scenario says so, restarts that lose its
// last writes. It decides by version alone and knows no rule of leases. The way to it (latency,
// loss) is the network's business (network.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lease/events.h"
#include "simulation/clock.h"
#include "simulation/scenario.h"

namespace leasehold::simulation {

class Register {
 public:
  struct Entry {
    TrueNs at = 0;
    lease::Record record;
    lease::Version version;
  };

  Register(const StorePlan& plan, std::optional<lease::Record> first);

  // nullptr: absent.
  const Entry* current() const;
  // True if the write took; it is then current().
  bool CompareAndSet(TrueNs at, const std::optional<lease::Version>& expected,
                     const lease::Record& record);
  // Forgets the last `count` writes, down to absent. Returns the instant it fell back to.
  TrueNs LoseWrites(size_t count);
  size_t writes() const { return history_.size(); }

 private:
  const bool numbered_versions_;
  uint64_t revision_ = 0;  // counts applied writes; a lossy restart counts on from there
  std::vector<Entry> history_;
};

// The record a run starts with; nullopt: none.
std::optional<lease::Record> FirstRecord(const StorePlan& plan, int64_t ttl_ms);

}  // namespace leasehold::simulation
