#include "simulation/sim_store.h"

#include <utility>

#include "simulation/network.h"
#include "simulation/node.h"
#include "simulation/world.h"

namespace leasehold::simulation {
namespace {

constexpr uint64_t kStream = 0x6c656176;
constexpr char kNoAnswer[] = "no answer from the store in time";

store::ReadResult ToResult(const lease::ReadAnswer& answer) {
  using From = lease::ReadAnswer::Outcome;
  using To = store::ReadResult::Outcome;
  store::ReadResult result;
  switch (answer.outcome) {
    case From::kAbsent: result.outcome = To::kAbsent; break;
    case From::kRecord: result.outcome = To::kRecord; break;
    case From::kAmbiguous: result.outcome = To::kAmbiguous; break;
    case From::kRefused: result.outcome = To::kRefused; break;
  }
  if (answer.record) result.record = *answer.record;
  result.version = answer.version;
  result.holder_dead = answer.holder_dead;
  result.error = answer.error;
  return result;
}

store::CasResult ToResult(const lease::CasAnswer& answer) {
  using From = lease::CasAnswer::Outcome;
  using To = store::CasResult::Outcome;
  store::CasResult result;
  switch (answer.outcome) {
    case From::kApplied: result.outcome = To::kApplied; break;
    case From::kConflict: result.outcome = To::kConflict; break;
    case From::kAmbiguous: result.outcome = To::kAmbiguous; break;
    case From::kRefused: result.outcome = To::kRefused; break;
  }
  result.version = answer.version;
  result.record = answer.record;
  result.absent = answer.absent;
  result.error = answer.error;
  return result;
}

}  // namespace

SimStore::SimStore(World& world, Node& node, const Process& process)
    : world_(world),
      node_(node),
      process_(process),
      random_(world.scenario().seed ^ (kStream << 8) ^ static_cast<uint64_t>(process.serial)) {}

void SimStore::Open(TroubleCallback, std::function<void(base::Status)> done) { done({}); }

void SimStore::Expect(const lease::Effects& effects) {
  expected_.reset();
  for (const lease::Effect& effect : effects) {
    if (const auto* cas = std::get_if<lease::CasEffect>(&effect)) expected_ = *cas;
  }
}

std::optional<int64_t> SimStore::StoreTime() const {
  if (!world_.scenario().store.tells_time) return std::nullopt;
  return world_.now() / kMillisecond;
}

void SimStore::Read(std::string_view, base::Duration timeout, ReadCallback done) {
  auto call = std::make_shared<Call>(Call{std::move(done), {}, node_.BootNow() + timeout});
  ScheduleTimeout(call);
  world_.network().Read(
      process_, 0,
      [this, call, weak = node_.Alive()](std::shared_ptr<const lease::ReadAnswer> answer) {
        if (weak.expired()) return;
        node_.ArrivesFromStore([this, call, answer = std::move(answer)] { Arrives(call, answer); });
      });
}

void SimStore::CompareAndSet(std::string_view, const std::optional<lease::Version>& expected,
                             const lease::Record& record, base::Duration timeout,
                             CasCallback done) {
  // All that the driver adds is for people: the wall clock of the acquisition and who had it.
  lease::Record plain = record;
  if (expected_) {
    plain.acquired_at_unix_ms = expected_->record.acquired_at_unix_ms;
    plain.former = expected_->record.former;
  }
  if (!expected_ || expected_->expected != expected || !(expected_->record == plain)) {
    world_.Violate("the driver sends what the engine said, once",
                   Name(process_) + " sends " + lease::MakeVersion(record) +
                       ", which is not what its engine said");
    return;
  }
  lease::CasEffect effect = *std::exchange(expected_, std::nullopt);
  effect.record = record;
  auto call = std::make_shared<Call>(Call{{}, std::move(done), node_.BootNow() + timeout});
  ScheduleTimeout(call);
  Leave(effect, call);
}

void SimStore::Leave(const lease::CasEffect& effect, const CallPtr& call) {
  const base::MonoTime decided = node_.BootNow();
  if (world_.faults_over() || random_.Unit() >= world_.scenario().faults.cut_short) {
    return Send(effect, decided, call);
  }
  if (random_.Below(2) == 0) {
    return node_.StopHere([this, effect, decided, call] { Send(effect, decided, call); });
  }
  // Everything before this in the turn was done, nothing after it is seen.
  world_.At(world_.now(), [&node = node_, alive = node_.Alive()] {
    if (!alive.expired()) node.Crash();
  });
  world_.After(kMillisecond, [&node = node_] {
    if (!node.running()) node.Start();
  });
}

void SimStore::Send(const lease::CasEffect& effect, base::MonoTime decided, const CallPtr& call) {
  world_.Tell(&Checker::Sending, {process_, world_.now(), effect});
  world_.network().CompareAndSet(
      process_, effect, decided,
      [this, call, weak = node_.Alive()](std::shared_ptr<const lease::CasAnswer> answer) {
        if (weak.expired()) return;
        node_.ArrivesFromStore([this, call, answer = std::move(answer)] { Arrives(call, answer); });
      });
}

bool SimStore::Doubles() {
  return !world_.faults_over() && random_.Unit() < world_.scenario().store.doubled;
}

template <typename Answer>
void SimStore::Arrives(const CallPtr& call, const std::shared_ptr<const Answer>& answer) {
  if (call->answered && !Doubles()) return;
  Answered(call, *answer);
  if (!Doubles()) return;
  const auto later = static_cast<TrueNs>(
      random_.Below(1 + static_cast<uint64_t>(world_.scenario().store.tail_max)));
  world_.After(later, [this, call, answer, weak = node_.Alive()] {
    if (weak.expired()) return;
    node_.ArrivesFromStore([this, call, answer] { Answered(call, *answer); });
  });
}

void SimStore::Answered(const CallPtr& call, const lease::ReadAnswer& answer) {
  call->answered = true;
  store::ReadResult result = ToResult(answer);
  result.store_unix_ms = StoreTime();
  call->read(std::move(result));
}

void SimStore::Answered(const CallPtr& call, const lease::CasAnswer& answer) {
  call->answered = true;
  store::CasResult result = ToResult(answer);
  result.store_unix_ms = StoreTime();
  call->cas(std::move(result));
}

void SimStore::ScheduleTimeout(const CallPtr& call) {
  node_.CallAt(call->deadline, [this, call] {
    if (call->answered) return;
    if (node_.BootNow() < call->deadline) return ScheduleTimeout(call);  // the clock stood still
    if (call->read) {
      lease::ReadAnswer none;
      none.error = kNoAnswer;
      Answered(call, none);
    } else {
      lease::CasAnswer none;
      none.error = kNoAnswer;
      Answered(call, none);
    }
  });
}

void SimStore::Watch(std::string_view, WatchCallback hint) { hint_ = std::move(hint); }

void SimStore::ProbeWrite(std::string_view, base::Duration,
                          std::function<void(base::Status)> done) {
  node_.PostTurn([done = std::move(done)] { done({}); });
}

void SimStore::Close(std::function<void()> done) { done(); }

}  // namespace leasehold::simulation
