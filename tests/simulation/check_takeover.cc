// Nothing is taken before its time, by the node's own clock and its own sight alone (DESIGN 2.2):
// a held record one window of the record's TTL after the answer in which its version last changed;
// a released one at once; one that has gone back only after a window of the longest TTL known; a
// proven dead holder's at once; an unusable one never. And only for a ready application that was
// not told to stop.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulation/checkers.h"
#include "simulation/per_process.h"

namespace leasehold::simulation {
namespace {

struct Seen {  // one run of sights of the same version
  bool absent = false;
  lease::Record record;
  lease::Version version;
  base::MonoTime since;
  bool dead = false;  // the holder of this very version was proven dead
  // Set if the store has gone back: since when, and the TTL to wait for.
  std::optional<base::MonoTime> gone_back_since;
  base::Duration gone_back_ttl;
};

struct Watcher {
  std::vector<Seen> seen;  // the last few, newest last
  bool knows_any = false;
  uint64_t highest_token = 0;
  base::Duration last_ttl;
  std::map<std::string, uint64_t> beats;  // highest seen of each process
  bool app_ready = false;
  bool told_to_stop = false;
  std::optional<lease::CasEffect> writing;
  bool lost_to_gone_back = false;  // it was the holder when it saw that the store went back
};

class TakeoverChecker final : public Checker {
 public:
  using Checker::Checker;

  void Born(const Process& process) override {
    Watcher& w = watchers_[process];
    w.highest_token = process.memory.highest_token;
    w.last_ttl = process.memory.last_ttl;
    w.knows_any = w.highest_token > 0 || w.last_ttl > base::Duration::Zero();
  }

  void Stepped(const StepFact& f) override {
    Watcher& w = watchers_[f.process];
    if (const auto* app = std::get_if<lease::AppState>(&f.event)) w.app_ready = app->ready;
    if (std::holds_alternative<lease::Shutdown>(f.event)) w.told_to_stop = true;
    if (!f.answers_latest) {
      // nothing was shown
    } else if (const auto sight = SightOf(f.event)) {
      Note(w, f, sight->record, sight->version, sight->holder_dead);
    } else if (const auto* cas = std::get_if<lease::CasAnswer>(&f.event)) {
      if (cas->outcome == lease::CasAnswer::Outcome::kApplied && w.writing &&
          w.writing->op == cas->op) {
        Note(w, f, &w.writing->record, cas->version, false);
      }
    }
    for (const lease::Effect& effect : f.effects) {
      const auto* cas = std::get_if<lease::CasEffect>(&effect);
      if (cas == nullptr) continue;
      w.writing = *cas;
      if (cas->purpose == lease::CasEffect::Purpose::kAcquire) CheckTaking(w, f, *cas);
    }
  }

 private:
  static constexpr size_t kKept = 4;

  static bool GoneBack(const Watcher& w, const lease::Record* record) {
    if (record == nullptr) return w.knows_any;
    if (record->token < w.highest_token) return true;
    const auto beat = w.beats.find(record->process_id);
    return beat != w.beats.end() && record->beat < beat->second;
  }

  void Note(Watcher& w, const StepFact& f, const lease::Record* record,
            const lease::Version& version, bool dead) {
    const bool holding = f.before.MayAct(f.now);
    const Seen* last = w.seen.empty() ? nullptr : &w.seen.back();
    const bool same =
        last != nullptr && last->absent == (record == nullptr) && last->version == version;
    if (same) {
      if (dead) w.seen.back().dead = true;
      return;
    }
    Seen now;
    now.absent = record == nullptr;
    if (record != nullptr) now.record = *record;
    now.version = version;
    now.since = f.now;
    now.dead = dead;
    if (GoneBack(w, record)) {
      const bool went_on = last != nullptr && last->gone_back_since.has_value();
      now.gone_back_since = went_on ? *last->gone_back_since : f.now;
      now.gone_back_ttl = Max(w.last_ttl, f.process.timing.ttl);
      if (!went_on) w.lost_to_gone_back = holding;
    } else if (record != nullptr && lease::ValidateRecord(*record).ok()) {
      w.last_ttl = record->ttl();
    }
    w.knows_any = w.knows_any || record != nullptr;
    if (record != nullptr && lease::ValidateRecord(*record).ok()) {
      w.highest_token = std::max(w.highest_token, record->token);
      uint64_t& beat = w.beats[record->process_id];
      beat = std::max(beat, record->beat);
    }
    w.seen.push_back(std::move(now));
    if (w.seen.size() > kKept) w.seen.erase(w.seen.begin());
  }

  void CheckTaking(const Watcher& w, const StepFact& f, const lease::CasEffect& cas) {
    if (!w.app_ready) Broken(f, "an application that is not ready does not compete", "acquires");
    if (w.told_to_stop) Broken(f, "after SIGTERM nothing is taken back", "acquires");
    if (f.after.MayAct(f.now)) {
      Broken(f, "a process acquires only when it has no permit", "acquires with a permit");
    }
    const Seen* base = nullptr;
    for (const Seen& seen : w.seen) {
      if (seen.absent != !cas.expected.has_value()) continue;
      if (seen.absent || seen.version == *cas.expected) base = &seen;
    }
    if (base == nullptr) {
      Broken(f, "an acquisition replaces a version that was seen",
             "acquires on " + cas.expected.value_or("absence") + ", which it has not seen");
      return;
    }
    CheckBase(w, f, *base);
  }

  void CheckBase(const Watcher& w, const StepFact& f, const Seen& base) {
    const bool own = !base.absent && base.record.process_id == f.process.identity.process_id;
    if (base.gone_back_since && !own && !w.lost_to_gone_back) {
      const base::MonoTime from =
          *base.gone_back_since + f.process.timing.Window(base.gone_back_ttl);
      if (f.now < from) {
        Broken(f,
               "a store that has gone back is waited out for one window of the longest TTL known",
               "acquires " + Seconds(from - f.now) + " s too early after the store went back");
      }
    }
    if (base.absent) return;
    if (!lease::ValidateRecord(base.record).ok()) {
      Broken(f, "a record of a higher format or with a bad ttl_ms is never overwritten",
             "acquires over " + base.version);
    }
    if (own || base.dead || !base.record.held()) return;
    const base::MonoTime from = base.since + f.process.timing.Window(base.record.ttl());
    if (f.now < from) {
      Broken(
          f,
          "a standby takes over when the version has not changed in its sight for one TTL of the "
          "record x (1 + drift)",
          "acquires over " + base.version + " " + Seconds(from - f.now) + " s too early");
    }
  }

  void Broken(const StepFact& f, const std::string& rule, const std::string& what) {
    judge_.Violate(rule, Name(f.process) + " " + what);
  }

  PerProcess<Watcher> watchers_;
};

}  // namespace

std::unique_ptr<Checker> MakeTakeoverChecker(Judge& judge) {
  return std::make_unique<TakeoverChecker>(judge);
}

}  // namespace leasehold::simulation
