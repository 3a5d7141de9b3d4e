// LatestCall: the store call that a process began last, as its effects and the answers it got show
// it: what several checkers ask. Not the engine's own idea of it: that is what they judge.
#pragma once

#include <optional>
#include <variant>

#include "simulation/per_process.h"

namespace leasehold::simulation {

struct LatestCall {
  uint64_t op = 0;
  std::optional<lease::CasEffect::Purpose> write;  // nullopt: a read
  uint64_t token = 0;                              // of a write
  uint64_t beat = 0;
  base::MonoTime sent;
  base::MonoTime ends;  // no answer by then is an ambiguous one
  bool open = false;    // neither answered nor given up

  bool RanOut(base::MonoTime now) const { return open && now >= ends; }

  // To be called last in Stepped: what comes out of this step, and whether it answered the call.
  void Note(const StepFact& f) {
    const auto* read = std::get_if<lease::ReadAnswer>(&f.event);
    const auto* cas = std::get_if<lease::CasAnswer>(&f.event);
    if ((read != nullptr && read->op == op) || (cas != nullptr && cas->op == op)) open = false;
    if (RanOut(f.now)) open = false;
    for (const lease::Effect& effect : f.effects) {
      if (const auto* begun = std::get_if<lease::ReadEffect>(&effect)) {
        *this = {begun->op, std::nullopt, 0, 0, f.now, f.now + begun->timeout, true};
      } else if (const auto* write_begun = std::get_if<lease::CasEffect>(&effect)) {
        const lease::CasEffect& w = *write_begun;
        *this = {w.op, w.purpose, w.record.token, w.record.beat, f.now, f.now + w.timeout, true};
      }
    }
  }
};

// The first effect of kind T in a step, or nullptr.
template <typename T>
const T* FirstEffect(const StepFact& f) {
  for (const lease::Effect& effect : f.effects) {
    if (const auto* found = std::get_if<T>(&effect)) return found;
  }
  return nullptr;
}

// What a valve was told last, and why.
struct ToldValve {
  lease::Valve valve = lease::Valve::kClosed;
  lease::Reason reason = lease::Reason::kNone;
  base::MonoTime drain_end;

  void Note(const StepFact& f) {
    for (const lease::Effect& effect : f.effects) {
      if (const auto* told = std::get_if<lease::ValveEffect>(&effect)) {
        *this = {told->valve, told->reason, told->drain_end};
      }
    }
  }
};

}  // namespace leasehold::simulation
