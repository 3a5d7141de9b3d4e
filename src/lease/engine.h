// Engine: the lease protocol of DESIGN section 2, pure. Step(now, event) changes its state and
// appends effects; NextDeadline() says when it wants a Tick. No I/O, no clock, no globals: same
// start, same events, same times give the same effects byte for byte. It owns the Permit. Not here:
// how a store is spoken to (store/), what a gate does (gate/), who carries effects out
// (app/lease_driver.h).
//
// Invariants: the permit never outlives first sending of the confirmed write + TTL - margin; it is
// over before a release is emitted; one store call is under way at a time; tokens only rise.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "lease/events.h"
#include "lease/options.h"
#include "lease/permit.h"

namespace leasehold::lease {

struct Identity {
  std::string node_id;
  std::string process_id;
};

// What is known before the first read, from node.state_dir. All empty on a first start.
struct Memory {
  uint64_t highest_token = 0;
  base::Duration last_ttl;  // TTL last seen in the store; zero: none
};

// What people and probes are shown. A copy; never used to decide whether to act (that is the
// Permit).
struct View {
  std::string lease;
  State state = State::kStandby;
  bool at_risk = false;
  uint64_t token = 0;                  // ours while holding, else the highest seen
  bool holding = false;                // active or draining with a permit
  Reason last_reason = Reason::kNone;  // of the last step-down or loss
  base::MonoTime expiry;               // while holding
  base::MonoTime drain_end;            // while draining
  std::optional<Record> seen;          // the record as last seen
  base::MonoTime seen_at;              // when an answer last came from the store
  bool store_ok = false;               // the last store call was answered
  bool app_ready = false;
  bool step_down_in_progress =
      false;  // draining, releasing or hold-off: describe answers failed_precondition
  int failed_rounds = 0;
  std::string last_error;     // of the store; empty when store_ok
  std::string not_competing;  // why a standby does not compete; empty if it does
};

class Engine {
 public:
  // `seed` drives all jitter. No wall clock is read here: the driver fills in acquired_at when it
  // carries a CasEffect out.
  Engine(const Options& options, Identity identity, uint64_t seed, base::MonoTime now,
         Memory memory = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) = delete;

  // Gate name -> advertised address, written into our records from now on. Known only when the
  // gates listen; give it before the first Step.
  void SetPeers(std::map<std::string, std::string> peers);

  void Step(base::MonoTime now, const Event& event, Effects& effects);
  base::MonoTime NextDeadline() const;

  const Permit& permit() const;  // stable address for the engine's life
  View view() const;
  // The record as last seen; nullopt: none, or nothing seen yet. Valid until the next Step.
  const std::optional<Record>& seen() const;
  State state() const;
  const Timing& timing() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace leasehold::lease
