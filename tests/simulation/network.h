// Network: the way of a store call from a node to the register and back: latencies with heavy
// tails, lost requests and replies, resets whose request arrives later all the same, outages,
// cut-off nodes, refusals. It carries one request to the register at most once: compare-and-sets
// are never doubled (one connection), but they may arrive long after their sender gave up.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/random.h"
#include "lease/events.h"
#include "simulation/clock.h"
#include "simulation/facts.h"

namespace leasehold::simulation {

class World;

class Network {
 public:
  // Shared: an answer passes through several entries of the queue, and a record is costly to copy.
  using ReadDone = std::function<void(std::shared_ptr<const lease::ReadAnswer>)>;
  using CasDone = std::function<void(std::shared_ptr<const lease::CasAnswer>)>;

  explicit Network(World& world);

  // `done` is called at most once, from the queue; not at all when an answer is lost.
  void Read(const Process& from, uint64_t op, ReadDone done);
  // `decided`: on the writer's clock, when its engine said so; it may have stood still since.
  void CompareAndSet(const Process& from, const lease::CasEffect& effect, base::MonoTime decided,
                     CasDone done);

  // ---- spells; each ends at `until` ----
  enum class Away { kUnreachable, kFrozen };  // at once ambiguous, or late or never answered
  void StoreAway(TrueNs until, Away how);
  void CutOff(int node, TrueNs until);
  void StoreRefuses(TrueNs until);
  void EndSpells();
  // ---- single faults, for cases: of the node's next `count` compare-and-sets ----
  void LoseReplies(int node, int count);    // the store takes it; nobody hears
  void AnswerUnclear(int node, int count);  // ambiguous at once; the store never sees it
  void LoseWrites(size_t count);

 private:
  enum class Fate { kArrives, kLost, kResets };
  struct Way {
    Fate fate = Fate::kArrives;
    bool resets = false;  // the caller sees a reset at once, whatever becomes of the request
    TrueNs arrives = 0;
    bool reply_lost = false;
  };
  Way Draw(int node);
  TrueNs Leg();
  TrueNs Capped(TrueNs at) const;
  bool Refusing() const;
  void Serve(const Process& from, const lease::CasEffect& effect, TrueNs sent_at,
             base::MonoTime sent, lease::CasAnswer& answer);
  void FillConflict(lease::CasAnswer& answer);
  std::shared_ptr<const lease::ReadAnswer> Look(uint64_t op);
  void ScheduleHints(bool changed_hands);

  World& world_;
  base::Random random_;
  TrueNs away_until_ = 0;
  Away away_ = Away::kUnreachable;
  TrueNs refuses_until_ = 0;
  std::vector<TrueNs> cut_off_until_;
  std::vector<int> replies_to_lose_;
  std::vector<int> unclear_;
};

}  // namespace leasehold::simulation
