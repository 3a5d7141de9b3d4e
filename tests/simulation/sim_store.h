// SimStore: the store adapter of one simulated process: store::LeaseStore over the network to the
// register. It keeps the adapters' contract: each call answered once, later, by its time-out at the
// latest (ambiguous then), never from inside the call; nothing is repeated. What it does not always
// keep is "once": in some worlds answers are told again, or after their time-out, because the
// engine must not rely on it. And it is the checkers' witness of what the driver really sends: each
// compare-and-set must be what the engine said.
#pragma once

#include <map>
#include <memory>

#include "base/random.h"
#include "simulation/facts.h"
#include "store/lease_store.h"

namespace leasehold::simulation {

class Node;
class World;

class SimStore final : public store::LeaseStore {
 public:
  SimStore(World& world, Node& node, const Process& process);

  // The effects that the driver carries out now; the next compare-and-set must be in them.
  void Expect(const lease::Effects& effects);
  void Push(store::WatchEvent::Kind kind) {
    if (hint_) hint_({kind});
  }

  void Open(TroubleCallback trouble, std::function<void(base::Status)> done) override;
  void Read(std::string_view lease, base::Duration timeout, ReadCallback done) override;
  void CompareAndSet(std::string_view lease, const std::optional<lease::Version>& expected,
                     const lease::Record& record, base::Duration timeout,
                     CasCallback done) override;
  void Watch(std::string_view lease, WatchCallback hint) override;
  void ProbeWrite(std::string_view lease, base::Duration timeout,
                  std::function<void(base::Status)> done) override;
  store::StoreStats stats() const override { return {}; }
  std::string Describe() const override { return "simulated register"; }
  void Close(std::function<void()> done) override;

 private:
  // Of either kind; exactly one callback is set. Shared by the answer and the time-out: who comes
  // first answers.
  struct Call {
    ReadCallback read;
    CasCallback cas;
    base::MonoTime deadline;
    bool answered = false;
  };
  using CallPtr = std::shared_ptr<Call>;

  bool Doubles();
  template <typename Answer>
  void Arrives(const CallPtr& call, const std::shared_ptr<const Answer>& answer);
  void Answered(const CallPtr& call, const lease::ReadAnswer& answer);
  void Answered(const CallPtr& call, const lease::CasAnswer& answer);
  // The process may be stopped, or die, between its decision to write and the write.
  void Leave(const lease::CasEffect& effect, const CallPtr& call);
  void Send(const lease::CasEffect& effect, base::MonoTime decided, const CallPtr& call);
  void ScheduleTimeout(const CallPtr& call);
  std::optional<int64_t> StoreTime() const;

  World& world_;
  Node& node_;
  const Process& process_;
  WatchCallback hint_;
  std::optional<lease::CasEffect> expected_;
  base::Random random_;  // of Leave and Doubles alone
};

}  // namespace leasehold::simulation
