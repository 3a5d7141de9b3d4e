#include "app/lease_report.h"

#include <utility>

#include "loop/loop.h"

namespace leasehold::app {
namespace {

using loop::Loop;

struct CounterName {
  const char* name;
  const char* help;
};

constexpr CounterName kAcquisitions = {"leasehold_lease_acquisitions_total",
                                       "Acquisitions of the lease by this process."};
constexpr CounterName kLosses = {"leasehold_lease_losses_total", "Losses of the lease, by reason."};
constexpr CounterName kStepDowns = {"leasehold_lease_step_downs_total",
                                    "Step-downs begun, by reason."};
constexpr CounterName kTokenRegressions = {
    "leasehold_lease_token_regressions_total",
    "Times the store showed a fencing token that is not the one seen before: lower, or another's."};
constexpr CounterName kRenewals = {"leasehold_lease_renewals_total",
                                   "Renewals answered, by result."};

// One sentence for people, per notice: what it means and, where there is something to do, what.
std::string_view NoticeSentence(const lease::NoticeEffect& effect) {
  switch (effect.notice) {
    case lease::Notice::kAcquired: return "this process holds the lease; its gates open";
    case lease::Notice::kAtRisk:
      return "a renewal round failed; still serving until the permit ends";
    case lease::Notice::kRestored: return "a renewal succeeded again";
    case lease::Notice::kDraining:
      return "stepping down: finishing what is in flight, admitting nothing new";
    case lease::Notice::kReleased: return "the lease was given back";
    case lease::Notice::kLost: return "the lease is lost; every gate is shut";
    case lease::Notice::kObserved:
      return effect.holder_node_id.empty() ? "nobody holds the lease"
                                           : "the holder seen in the store changed";
    case lease::Notice::kStoreDegraded: return "the store does not answer as it should";
    case lease::Notice::kStoreRecovered: return "the store answers again";
    case lease::Notice::kDuplicateId:
      return "another process uses this node id; give every instance its own node.id";
    case lease::Notice::kTokenRegression:
      return "the store shows another fencing token than was seen: it lost acknowledged writes";
    case lease::Notice::kTokenExhausted:
      return "the largest fencing token is used; the lease cannot be acquired";
    case lease::Notice::kRecordUnusable:
      return "the record in the store is not one this version may overwrite";
  }
  return "";
}

observe::LogLevel NoticeLevel(lease::Notice notice) {
  switch (notice) {
    case lease::Notice::kAtRisk:
    case lease::Notice::kLost:
    case lease::Notice::kStoreDegraded:
    case lease::Notice::kDuplicateId:
    case lease::Notice::kTokenRegression: return observe::LogLevel::kWarn;
    case lease::Notice::kTokenExhausted:
    case lease::Notice::kRecordUnusable: return observe::LogLevel::kError;
    default: return observe::LogLevel::kInfo;
  }
}

// As text: a reader of JSON lines may round a 64-bit number. None (store.*): empty, and so left
// out.
std::string TokenText(uint64_t token) { return token == 0 ? "" : std::to_string(token); }

std::string_view GateSentence(lease::Valve valve) {
  switch (valve) {
    case lease::Valve::kOpen: return "the gate admits";
    case lease::Valve::kDraining:
      return "the gate admits nothing new and finishes what is in flight";
    case lease::Valve::kHolding:
    case lease::Valve::kClosed: return "the gate is shut";
  }
  return "";
}

std::string_view GateEventName(lease::Valve valve) {
  switch (valve) {
    case lease::Valve::kOpen: return "gate.opened";
    case lease::Valve::kDraining: return "gate.draining";
    case lease::Valve::kHolding:  // told as lease.at_risk; the gate's state shows it
    case lease::Valve::kClosed: return "gate.closed";
  }
  return "gate.closed";
}

}  // namespace

LeaseReport::LeaseReport(observe::Log& log, observe::Metrics& metrics, observe::EventBus& events,
                         std::string lease, lease::Identity identity)
    : log_(log),
      metrics_(metrics),
      events_(events),
      lease_(std::move(lease)),
      identity_(std::move(identity)),
      renew_seconds_(metrics.AddHistogram("leasehold_lease_renew_seconds",
                                          "Time from sending a renewal to its answer, by lease.",
                                          {{"lease", lease_}}, observe::LatencyBounds())),
      takeover_seconds_(metrics.AddHistogram(
          "leasehold_lease_takeover_seconds",
          "Time from this process's last sight of a change in the record to holding.",
          {{"lease", lease_}}, {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600})) {
  MakeCounters();
}

// Every series exists from the start, so that increase() sees its first event.
void LeaseReport::MakeCounters() {
  using lease::Reason;
  Counter(kAcquisitions.name, kAcquisitions.help, {});
  Counter(kTokenRegressions.name, kTokenRegressions.help, {});
  for (const Reason reason : {Reason::kSuperseded, Reason::kAbsent, Reason::kExpired,
                              Reason::kHostFrozen, Reason::kStoreRegressed}) {
    Counter(kLosses.name, kLosses.help, {{"reason", std::string(lease::ReasonName(reason))}});
  }
  for (const Reason reason : {Reason::kRequested, Reason::kShutdown, Reason::kRenewalsFailed,
                              Reason::kAppUnready, Reason::kStartFailed}) {
    Counter(kStepDowns.name, kStepDowns.help, {{"reason", std::string(lease::ReasonName(reason))}});
  }
  using Outcome = store::CasResult::Outcome;
  for (const Outcome outcome :
       {Outcome::kApplied, Outcome::kConflict, Outcome::kAmbiguous, Outcome::kRefused}) {
    renewals_[static_cast<size_t>(outcome)] = &Counter(
        kRenewals.name, kRenewals.help, {{"result", std::string(store::ResultName(outcome))}});
  }
}

observe::Counter& LeaseReport::Counter(const char* name, const char* help, observe::Labels labels) {
  labels["lease"] = lease_;
  return metrics_.AddCounter(name, help, labels);
}

void LeaseReport::Tell(const lease::NoticeEffect& effect) {
  observe::Event event;
  event.name = std::string(lease::NoticeName(effect.notice));
  event.lease = lease_;
  event.token = effect.token;
  event.holder_node_id = effect.holder_node_id;
  event.holder_process_id = effect.holder_process_id;
  event.reason = std::string(lease::ReasonName(effect.reason));
  event.grace = effect.grace;
  event.detail = effect.detail;
  event.at = Loop::WallNow();
  std::string message(NoticeSentence(effect));
  if (!effect.detail.empty()) message += ": " + effect.detail;
  log_.Write(NoticeLevel(effect.notice), event.name, message,
             {{"lease", lease_},
              {"token", TokenText(effect.token)},
              {"holder", effect.holder_node_id},
              {"process", effect.holder_process_id},
              {"reason", event.reason}});
  CountNotice(effect);
  events_.Publish(std::move(event));
}

void LeaseReport::CountNotice(const lease::NoticeEffect& effect) {
  const observe::Labels by_reason = {{"reason", std::string(lease::ReasonName(effect.reason))}};
  switch (effect.notice) {
    case lease::Notice::kAcquired:
      Counter(kAcquisitions.name, kAcquisitions.help, {}).Add();
      takeover_seconds_.Observe(effect.unchanged_for.seconds());
      return;
    case lease::Notice::kLost: Counter(kLosses.name, kLosses.help, by_reason).Add(); return;
    case lease::Notice::kDraining:
      Counter(kStepDowns.name, kStepDowns.help, by_reason).Add();
      return;
    case lease::Notice::kTokenRegression:
      Counter(kTokenRegressions.name, kTokenRegressions.help, {}).Add();
      return;
    case lease::Notice::kStoreDegraded:
      store_trouble_ = effect.detail.empty() ? "the store does not answer" : effect.detail;
      return;
    case lease::Notice::kStoreRecovered: store_trouble_.clear(); return;
    case lease::Notice::kReleased:
      // Given back without a drain: it is told nowhere else.
      if (effect.reason == lease::Reason::kStartFailed)
        Counter(kStepDowns.name, kStepDowns.help, by_reason).Add();
      return;
    default: return;
  }
}

void LeaseReport::CountRenewal(store::CasResult::Outcome outcome, base::Duration took) {
  renew_seconds_.Observe(took.seconds());
  renewals_[static_cast<size_t>(outcome)]->Add();
}

void LeaseReport::TellGate(const std::string& gate, const lease::ValveEffect& effect) {
  if (effect.valve == lease::Valve::kHolding) return;
  observe::Event event;
  event.name = std::string(GateEventName(effect.valve));
  event.lease = lease_;
  event.token = effect.token;
  event.reason = std::string(lease::ReasonName(effect.reason));
  event.gate = gate;
  event.holder_node_id = identity_.node_id;
  event.holder_process_id = identity_.process_id;
  event.at = Loop::WallNow();
  log_.Info(event.name, GateSentence(effect.valve),
            {{"lease", lease_},
             {"gate", event.gate},
             {"token", TokenText(effect.token)},
             {"reason", event.reason}});
  events_.Publish(std::move(event));
}

void LeaseReport::SetWriteTrouble(const std::string& trouble) {
  if (trouble == write_trouble_) return;
  write_trouble_ = trouble;
  const bool refused = !trouble.empty();
  observe::Event event;
  event.name = refused ? "store.degraded" : "store.recovered";
  event.lease = lease_;
  event.detail = trouble;
  event.at = Loop::WallNow();
  log_.Write(refused ? observe::LogLevel::kWarn : observe::LogLevel::kInfo, event.name,
             refused ? "this standby could not write the lease if it had to: " + trouble
                     : "this process could write the lease again",
             {{"lease", lease_}});
  events_.Publish(std::move(event));
}

}  // namespace leasehold::app
