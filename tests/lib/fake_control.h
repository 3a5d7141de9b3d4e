// FakeControl: a Control whose views a test writes and whose step-downs a test answers by hand.
// Starts as one node "n1" (process "p1") that holds the lease "orders" under token 12.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/control.h"
#include "loop/loop.h"

namespace leasehold::testing {

class FakeControl final : public admin::Control {
 public:
  struct Asked {
    admin::StepDownAsk ask;
    std::function<void(const lease::StepDownDone&)> done;
  };

  FakeControl() {
    node_view.node_id = "n1";
    node_view.process_id = "p1";
    node_view.version = "0.1.0";
    node_view.store = "file at /tmp/store";
    node_view.store_connected = true;
    lease_views.push_back(Holding("orders", 12));
  }

  static admin::LeaseView Holding(const std::string& name, uint64_t token) {
    admin::LeaseView lease;
    lease.view.lease = name;
    lease.view.state = lease::State::kActive;
    lease.view.token = token;
    lease.view.holding = true;
    lease.view.app_ready = true;
    lease.view.store_ok = true;
    lease.timing.ttl = base::Duration::Seconds(10);
    lease.may_act = true;
    lease.to_expiry = base::Duration::Millis(7250);
    lease.store_answered_within_ttl = true;
    return lease;
  }
  static admin::LeaseView Standby(const std::string& name, uint64_t token,
                                  const std::string& holder) {
    admin::LeaseView lease = Holding(name, token);
    lease.view.state = lease::State::kStandby;
    lease.view.holding = false;
    lease.may_act = false;
    lease.to_expiry = base::Duration::Zero();
    lease::Record record;
    record.lease = name;
    record.node_id = holder;
    record.process_id = "p-" + holder;
    record.token = token;
    record.ttl_ms = 10000;
    lease.view.seen = record;
    return lease;
  }

  admin::NodeView node() const override { return node_view; }
  std::vector<admin::LeaseView> leases() const override { return lease_views; }
  std::optional<admin::LeaseView> lease(std::string_view name) const override {
    for (const admin::LeaseView& view : lease_views) {
      if (view.view.lease == name) return view;
    }
    return std::nullopt;
  }
  base::Status StepDown(const admin::StepDownAsk& ask,
                        std::function<void(const lease::StepDownDone&)> done) override {
    if (refuse) return *refuse;
    if (!lease(ask.lease)) return base::Error{base::ErrorCode::kNotFound, "no such lease"};
    asked.push_back({ask, done});
    if (answer_at_once) done(*answer_at_once);
    return {};
  }
  std::string ConfigJson() const override { return R"({"store":{"password":"***"}})"; }
  void DrainProgress(const std::string& name) override { progress.push_back(name); }

  // An outcome as the engine would fill it for the given request.
  static lease::StepDownDone Done(lease::StepDownDone::Outcome outcome,
                                  const admin::StepDownAsk& ask) {
    lease::StepDownDone done;
    done.outcome = outcome;
    done.expected = ask.expected;
    done.hold_off = base::Duration::Seconds(5);
    if (outcome == lease::StepDownDone::Outcome::kTakenOver) {
      done.released_token = ask.expected.token;
      done.token = ask.expected.token + 1;
      done.node_id = "n2";
      done.process_id = "p2";
    }
    return done;
  }
  void Finish(size_t index, lease::StepDownDone::Outcome outcome) {
    asked.at(index).done(Done(outcome, asked.at(index).ask));
  }

  admin::NodeView node_view;
  std::vector<admin::LeaseView> lease_views;
  std::vector<Asked> asked;
  std::vector<std::string> progress;  // leases of DrainProgress, in order
  std::optional<lease::StepDownDone> answer_at_once;
  std::optional<base::Error> refuse;
};

}  // namespace leasehold::testing
