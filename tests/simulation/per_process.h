// PerProcess<T>: a T for every process of a run, made when first asked for; references stay good.
// What several checkers share lives here too: what an event showed of the register.
#pragma once

#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "simulation/facts.h"

namespace leasehold::simulation {

template <typename T>
class PerProcess {
 public:
  T& operator[](const Process& process) {
    while (items_.size() <= static_cast<size_t>(process.serial)) items_.emplace_back();
    return items_[static_cast<size_t>(process.serial)];
  }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 private:
  std::deque<T> items_;
};

// What an answer showed: nothing, absence, or a record with its version. `op`: of which call.
struct Sight {
  uint64_t op = 0;
  bool absent = false;
  const lease::Record* record = nullptr;
  lease::Version version;
  bool holder_dead = false;
};
inline std::optional<Sight> SightOf(const lease::Event& event) {
  Sight sight;
  if (const auto* read = std::get_if<lease::ReadAnswer>(&event)) {
    sight.op = read->op;
    sight.absent = read->outcome == lease::ReadAnswer::Outcome::kAbsent;
    if (read->outcome == lease::ReadAnswer::Outcome::kRecord) {
      sight.record = &*read->record;
      sight.version = read->version;
      sight.holder_dead = read->holder_dead;
    }
  } else if (const auto* cas = std::get_if<lease::CasAnswer>(&event)) {
    sight.op = cas->op;
    if (cas->outcome == lease::CasAnswer::Outcome::kConflict) {
      sight.absent = cas->absent;
      if (cas->record) {
        sight.record = &*cas->record;
        sight.version = cas->version;
      }
    }
  }
  if (!sight.absent && sight.record == nullptr) return std::nullopt;
  return sight;
}

// A process's own writes that took effect, in the order in which they did.
struct OwnWrite {
  uint64_t token = 0;
  uint64_t beat = 0;
  lease::CasEffect::Purpose purpose = lease::CasEffect::Purpose::kRenew;
  base::MonoTime sent;  // its own clock
  TrueNs sent_at = 0;
  TrueNs applied_at = 0;
};
inline OwnWrite ToOwnWrite(const WriteFact& f) {
  return {f.effect.record.token, f.effect.record.beat, f.effect.purpose, f.sent, f.sent_at, f.at};
}

}  // namespace leasehold::simulation
