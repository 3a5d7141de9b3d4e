// The engine's public face, its view for people and probes, and how effects are worded.

#include <utility>

#include "lease/engine.h"
#include "lease/engine_core.h"

namespace leasehold::lease {

using base::MonoTime;

Record Engine::Core::OwnRecord(RecordState state, uint64_t token) const {
  Record record;
  record.lease = options_.name;
  record.node_id = identity_.node_id;
  record.process_id = identity_.process_id;
  record.token = token;
  record.ttl_ms = timing_.ttl.millis();
  record.state = state;
  record.peers = peers_;
  return record;
}

void Engine::Core::SetValve(Valve valve, Reason reason, bool lost) {
  permit_.valve_ = valve;
  effects_->push_back(ValveEffect{valve, reason, lost, drain_end_, permit_.token_});
}

void Engine::Core::Tell(Notice notice, Reason reason, const std::string& detail) {
  NoticeEffect effect;
  effect.notice = notice;
  effect.reason = reason;
  effect.detail = detail;
  const bool of_store = notice == Notice::kStoreDegraded || notice == Notice::kStoreRecovered;
  if (!of_store) {
    effect.token = permit_.token_;
    effect.holder_node_id = identity_.node_id;
    effect.holder_process_id = identity_.process_id;
  }
  if (notice == Notice::kAcquired) effect.unchanged_for = now_ - unchanged_since_;
  if (notice == Notice::kDraining) effect.grace = Min(drain_end_ - now_, permit_.expiry_ - now_);
  effects_->push_back(std::move(effect));
}

void Engine::Core::TellOf(Notice notice, const Record& record, const std::string& detail) {
  NoticeEffect effect;
  effect.notice = notice;
  effect.token = record.token;
  if (record.held()) {
    effect.holder_node_id = record.node_id;
    effect.holder_process_id = record.process_id;
  }
  effect.detail = detail;
  effects_->push_back(std::move(effect));
}

View Engine::Core::MakeView() const {
  View view;
  view.lease = options_.name;
  view.state = state_;
  view.at_risk = at_risk_;
  view.holding = holding();
  view.token =
      view.holding || state_ == State::kReleasing ? permit_.token_ : observer_.highest_token();
  view.last_reason = last_reason_;
  view.expiry = permit_.expiry_;
  view.drain_end = drain_end_;
  view.seen = observer_.record();
  view.seen_at = store_seen_at_;
  view.store_ok = store_ok_;
  view.app_ready = app_ready_;
  view.step_down_in_progress =
      state_ == State::kDraining || state_ == State::kReleasing || state_ == State::kHoldOff;
  view.failed_rounds = failed_rounds_;
  view.last_error = last_error_;
  view.not_competing = view.holding ? "" : WhyNotCompeting();
  return view;
}

// ---- the public face ----

Engine::Engine(const Options& options, Identity identity, uint64_t seed, MonoTime now,
               Memory memory)
    : core_(std::make_unique<Core>(options, std::move(identity), seed, now, memory)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;

void Engine::Step(MonoTime now, const Event& event, Effects& effects) {
  core_->Step(now, event, effects);
}
MonoTime Engine::NextDeadline() const { return core_->NextDeadline(); }
const Permit& Engine::permit() const { return core_->permit(); }
State Engine::state() const { return core_->state(); }
View Engine::view() const { return core_->MakeView(); }
const std::optional<Record>& Engine::seen() const { return core_->seen(); }
void Engine::SetPeers(std::map<std::string, std::string> peers) {
  core_->SetPeers(std::move(peers));
}
const Timing& Engine::timing() const { return core_->timing(); }

}  // namespace leasehold::lease
