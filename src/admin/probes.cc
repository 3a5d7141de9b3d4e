#include "admin/probes.h"

#include <functional>
#include <utility>
#include <vector>

#include "admin/problem.h"
#include "base/json_writer.h"
#include "lease/events.h"

namespace leasehold::admin {
namespace {

// Why a lease does not satisfy the probe; empty when it does.
using Judge = std::function<std::string(const LeaseView&, const NodeView&)>;

std::string Named(const LeaseView& lease) {
  return "lease \"" + lease.view.lease + "\" (" + std::string(lease::StateName(lease.view.state)) +
         ")";
}

HttpAnswer Ok(std::string_view word, const std::vector<LeaseView>& leases) {
  HttpAnswer answer;
  base::JsonWriter json(answer.body);
  json.BeginObject().Member("status", word).Key("leases").BeginArray();
  for (const LeaseView& lease : leases) {
    json.BeginObject().Member("lease", lease.view.lease);
    json.Member("state", lease::StateName(lease.view.state));
    json.Member("holding", lease.may_act).EndObject();
  }
  json.EndArray().EndObject();
  return answer;
}

HttpAnswer Ask(const Control& control, const std::string& name, std::string_view good,
               std::string_view bad, const Judge& judge) {
  std::vector<LeaseView> leases;
  if (name.empty()) {
    leases = control.leases();
  } else if (std::optional<LeaseView> lease = control.lease(name)) {
    leases.push_back(*std::move(lease));
  } else {
    return ProblemAnswer(404, "not_found",
                         "there is no lease \"" + name + "\" here; /v1/leases lists them");
  }
  const NodeView node = control.node();
  std::string why = leases.empty() ? "no lease is configured" : "";
  for (const LeaseView& lease : leases) {
    const std::string reason = judge(lease, node);
    if (reason.empty()) continue;
    if (!why.empty()) why += "; ";
    why += Named(lease) + ": " + reason;
  }
  return why.empty() ? Ok(good, leases) : ProblemAnswer(503, bad, why);
}

std::string WhyNotReady(const LeaseView& lease, const NodeView& node) {
  if (lease.may_act) return "";
  if (lease.view.state == lease::State::kStopped) return "it has stopped";
  if (node.shutting_down) return "this process is shutting down";
  std::string why;
  if (node.app_checked && !node.app_ready) {
    why = "the application is not ready";
    if (!node.app_error.empty()) why += ": " + node.app_error;
  }
  if (!lease.store_answered_within_ttl) {
    if (!why.empty()) why += "; ";
    why += "the store has not answered within one TTL";
    if (!lease.view.last_error.empty()) why += ": " + lease.view.last_error;
  }
  return why;
}

}  // namespace

HttpAnswer Livez() {
  HttpAnswer answer;
  answer.body = R"({"status":"live"})";
  return answer;
}

HttpAnswer Readyz(const Control& control, const std::string& lease) {
  return Ask(control, lease, "ready", "not_ready", WhyNotReady);
}

HttpAnswer Leaderz(const Control& control, const std::string& lease) {
  return Ask(control, lease, "holding", "not_holding",
             [](const LeaseView& view, const NodeView& /*node*/) -> std::string {
               return view.may_act ? "" : "this process does not hold it";
             });
}

HttpAnswer Standbyz(const Control& control, const std::string& lease) {
  return Ask(control, lease, "standby", "not_a_hot_standby",
             [](const LeaseView& view, const NodeView& /*node*/) -> std::string {
               return view.may_act ? "this process holds it"
                                   : "this is a cold standby; only hot ones answer 200 here";
             });
}

}  // namespace leasehold::admin
