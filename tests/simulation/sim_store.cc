#include "simulation/sim_store.h"

#include <utility>

#include "simulation/network.h"
#include "simulation/node.h"
#include "simulation/world.h"

namespace leasehold::simulation {
namespace {

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
    : world_(world), node_(node), process_(process) {}

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
      process_, 0, [this, call, weak = node_.Alive()](const lease::ReadAnswer& answer) {
        if (!weak.expired())
          node_.ArrivesFromStore([this, call, answer] { Answered(call, answer); });
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
  world_.Tell(&Checker::Sending, {process_, world_.now(), effect});
  auto call = std::make_shared<Call>(Call{{}, std::move(done), node_.BootNow() + timeout});
  ScheduleTimeout(call);
  world_.network().CompareAndSet(
      process_, effect, [this, call, weak = node_.Alive()](const lease::CasAnswer& answer) {
        if (!weak.expired())
          node_.ArrivesFromStore([this, call, answer] { Answered(call, answer); });
      });
}

void SimStore::Answered(const CallPtr& call, const lease::ReadAnswer& answer) {
  ReadCallback done = std::exchange(call->read, nullptr);
  if (!done) return;
  store::ReadResult result = ToResult(answer);
  result.store_unix_ms = StoreTime();
  done(std::move(result));
}

void SimStore::Answered(const CallPtr& call, const lease::CasAnswer& answer) {
  CasCallback done = std::exchange(call->cas, nullptr);
  if (!done) return;
  store::CasResult result = ToResult(answer);
  result.store_unix_ms = StoreTime();
  done(std::move(result));
}

void SimStore::ScheduleTimeout(const CallPtr& call) {
  node_.CallAt(call->deadline, [this, call] {
    if (!call->read && !call->cas) return;
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
