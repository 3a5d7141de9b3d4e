// Store calls: one under way at a time; beats of a process rise with every attempt; what is written
// is a valid record of this process, with its own TTL, on a version that was seen, and what other
// programs wrote beside it is kept (DESIGN 2.1, 2.3).
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Caller {
  std::optional<uint64_t> op;
  base::MonoTime ends_at;  // answered by then at the latest
  uint64_t last_op = 0;
  uint64_t last_beat = 0;
  std::optional<lease::CasEffect> writing;
  // Versions seen and the unknown members they came with, the last few.
  std::deque<std::pair<lease::Version, std::map<std::string, std::string>>> seen;
};

class CallChecker final : public Checker {
 public:
  using Checker::Checker;

  void Stepped(const StepFact& f) override {
    Caller& caller = callers_[f.process];
    NoteAnswer(f, caller);
    for (const lease::Effect& effect : f.effects) {
      if (const auto* read = std::get_if<lease::ReadEffect>(&effect)) {
        CheckCall(f, caller, read->op, read->timeout);
      } else if (const auto* cas = std::get_if<lease::CasEffect>(&effect)) {
        CheckCall(f, caller, cas->op, cas->timeout);
        CheckWrite(f, caller, *cas);
        caller.writing = *cas;
      }
    }
  }

 private:
  static constexpr size_t kKept = 8;

  static void See(Caller& caller, const lease::Version& version, const lease::Record& record) {
    if (!caller.seen.empty() && caller.seen.back().first == version) return;
    caller.seen.emplace_back(version, record.unknown);
    if (caller.seen.size() > kKept) caller.seen.pop_front();
  }

  static void NoteAnswer(const StepFact& f, Caller& caller) {
    if (const auto sight = SightOf(f.event); sight && sight->record != nullptr) {
      See(caller, sight->version, *sight->record);
    }
    const auto* read = std::get_if<lease::ReadAnswer>(&f.event);
    const auto* cas = std::get_if<lease::CasAnswer>(&f.event);
    if (read != nullptr && caller.op == read->op) caller.op.reset();
    if (cas != nullptr && caller.op == cas->op) caller.op.reset();
    if (cas != nullptr && cas->outcome == lease::CasAnswer::Outcome::kApplied && caller.writing &&
        caller.writing->op == cas->op) {
      See(caller, cas->version, caller.writing->record);
    }
  }

  void CheckCall(const StepFact& f, Caller& caller, uint64_t op, base::Duration timeout) {
    if (caller.op && f.now < caller.ends_at) {
      Broken(f, "one store call is under way at a time",
             "begins call #" + std::to_string(op) + " while #" + std::to_string(*caller.op) +
                 " is under way");
    }
    if (op <= caller.last_op) {
      Broken(f, "every store call has a number of its own",
             "uses #" + std::to_string(op) + " after #" + std::to_string(caller.last_op));
    }
    if (timeout <= base::Duration::Zero()) {
      Broken(f, "every store call has time to be answered", "begins a call without any time");
    }
    caller.op = op;
    caller.last_op = op;
    caller.ends_at = f.now + timeout;
  }

  void CheckWrite(const StepFact& f, Caller& caller, const lease::CasEffect& cas) {
    const lease::Record& record = cas.record;
    if (record.beat <= caller.last_beat) {
      Broken(f, "the beat rises by one with every attempt of a process",
             "writes beat " + std::to_string(record.beat) + " after " +
                 std::to_string(caller.last_beat));
    }
    caller.last_beat = record.beat;
    if (!lease::ValidateRecord(record).ok() || record.lease != kLeaseName ||
        record.node_id != f.process.identity.node_id ||
        record.process_id != f.process.identity.process_id ||
        record.ttl() != f.process.timing.ttl || record.peers != f.process.peers) {
      Broken(f, "a record says who wrote it, for which lease, with which TTL and peers",
             "writes a record that is not its own: " + lease::MakeVersion(record));
    }
    if (!cas.expected) return;
    const auto base = std::find_if(caller.seen.rbegin(), caller.seen.rend(),
                                   [&](const auto& seen) { return seen.first == *cas.expected; });
    if (base == caller.seen.rend()) {
      Broken(f, "a write replaces a version that was seen",
             "expects version " + *cas.expected + ", which it has not seen lately");
    } else if (base->second != record.unknown) {
      Broken(f, "members of a record that this program does not know are kept",
             "drops or changes unknown members of " + *cas.expected);
    }
  }

  void Broken(const StepFact& f, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(f.process) + " " + what);
  }

  PerProcess<Caller> callers_;
};

}  // namespace

std::unique_ptr<Checker> MakeCallChecker(Judge& judge) {
  return std::make_unique<CallChecker>(judge);
}

}  // namespace leasehold::simulation
