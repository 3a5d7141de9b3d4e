// LeaseReport: how what happens to one lease becomes log lines, events and counters: one sentence
// for people per notice, the words of DESIGN 2.4 for programs. It decides nothing and asks nobody.
// Owned by LeaseDriver.
#pragma once

#include <array>
#include <string>

#include "base/time.h"
#include "lease/engine.h"
#include "lease/events.h"
#include "observe/event.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "store/lease_store.h"

namespace leasehold::app {

class LeaseReport {
 public:
  // What it borrows outlives it. Every counter exists from here on, at zero.
  LeaseReport(observe::Log& log, observe::Metrics& metrics, observe::EventBus& events,
              std::string lease, lease::Identity identity);

  void Tell(const lease::NoticeEffect& effect);
  void TellGate(const std::string& gate, const lease::ValveEffect& effect);
  void CountRenewal(store::CasResult::Outcome outcome, base::Duration took);
  // What the last write probe complained of; empty: nothing. Told when it changes.
  void SetWriteTrouble(const std::string& trouble);

  const std::string& write_trouble() const { return write_trouble_; }
  // Why the lease's own calls fail, while they are store.degraded; else empty.
  const std::string& store_trouble() const { return store_trouble_; }

 private:
  void MakeCounters();
  observe::Counter& Counter(const char* name, const char* help, observe::Labels labels);
  void CountNotice(const lease::NoticeEffect& effect);

  observe::Log& log_;
  observe::Metrics& metrics_;
  observe::EventBus& events_;
  const std::string lease_;
  const lease::Identity identity_;
  observe::Histogram& renew_seconds_;
  observe::Histogram& takeover_seconds_;
  std::array<observe::Counter*, 4> renewals_{};  // by CasResult::Outcome
  std::string write_trouble_;
  std::string store_trouble_;
};

}  // namespace leasehold::app
