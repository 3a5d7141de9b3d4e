#include "admin/views_json.h"

#include "base/text.h"

namespace leasehold::admin {
namespace {

using base::JsonWriter;

// "text", or null for what is not known.
void WriteOrNull(JsonWriter& json, std::string_view key, std::string_view text) {
  json.Key(key);
  if (text.empty()) {
    json.Null();
  } else {
    json.String(text);
  }
}

void WriteToken(JsonWriter& json, std::string_view key, uint64_t token) {
  json.Key(key);
  if (token == 0) {
    json.Null();
  } else {
    json.Token(token);
  }
}

void WriteMillis(JsonWriter& json, std::string_view key, base::Duration d) {
  json.Key(key).Int(d.millis());
}

void WriteHolder(JsonWriter& json, const LeaseView& lease, const NodeView& node) {
  json.Key("holder");
  const HolderView holder = HolderOf(lease, node);
  if (holder.node_id.empty()) {
    json.Null();
    return;
  }
  json.BeginObject().Member("node_id", holder.node_id).Member("process_id", holder.process_id);
  json.Key("token").Token(holder.token).EndObject();
}

void WriteRecord(JsonWriter& json, const std::optional<lease::Record>& seen) {
  json.Key("record");
  if (!seen) {
    json.Null();
    return;
  }
  json.BeginObject().Member("node_id", seen->node_id).Member("process_id", seen->process_id);
  json.Key("token").Token(seen->token).Key("beat").Token(seen->beat);
  json.Member("state", lease::RecordStateName(seen->state)).Key("ttl_ms").Int(seen->ttl_ms);
  WriteOrNull(json, "acquired_at",
              seen->acquired_at_unix_ms == 0
                  ? std::string()
                  : base::FormatWallTime(base::WallTime{seen->acquired_at_unix_ms}));
  json.Key("peers").BeginObject();
  for (const auto& [gate, address] : seen->peers) json.Member(gate, address);
  json.EndObject().EndObject();
}

void WriteTiming(JsonWriter& json, const lease::Timing& timing) {
  json.Key("timing").BeginObject();
  WriteMillis(json, "ttl_ms", timing.ttl);
  WriteMillis(json, "margin_ms", timing.margin);
  WriteMillis(json, "renew_interval_ms", timing.renew_interval);
  WriteMillis(json, "renew_call_timeout_ms", timing.call_timeout);
  WriteMillis(json, "poll_interval_ms", timing.poll_interval);
  WriteMillis(json, "step_down_grace_ms", timing.grace);
  WriteMillis(json, "step_down_hold_off_ms", timing.hold_off);
  json.Key("max_renew_fails").Int(timing.max_renew_fails);
  json.EndObject();
}

void WriteGate(JsonWriter& json, const GateView& gate) {
  json.BeginObject().Member("name", gate.name).Member("type", gate.type);
  json.Member("lease", gate.lease).Member("listen", gate.listen);
  json.Member("upstream", gate.upstream).Member("state", gate.state);
  json.Member("standby", gate.standby).Key("connections").Uint(gate.connections);
  json.Key("in_flight").Uint(gate.in_flight).Key("held").Uint(gate.held);
  json.Key("forwarding").Uint(gate.forwarding).Member("peer_listen", gate.peer_listen);
  json.Member("peer", gate.peer).EndObject();
}

// How long until `at`, never negative; null when there is no such instant now.
void WriteSpanUntil(JsonWriter& json, std::string_view key, bool known, base::Duration left) {
  json.Key(key);
  if (known) {
    json.Int(base::Max(left, base::Duration::Zero()).millis());
  } else {
    json.Null();
  }
}

}  // namespace

void WriteLease(JsonWriter& json, const LeaseView& lease, const NodeView& node,
                base::MonoTime now) {
  const lease::View& view = lease.view;
  json.BeginObject().Member("lease", view.lease).Member("state", lease::StateName(view.state));
  json.Member("holding", lease.may_act).Member("at_risk", view.at_risk);
  WriteToken(json, "token", view.token);
  WriteHolder(json, lease, node);
  WriteSpanUntil(json, "expires_in_ms", lease.may_act, lease.to_expiry);
  WriteSpanUntil(json, "drain_ends_in_ms", view.state == lease::State::kDraining,
                 view.drain_end.is_never() ? lease.to_expiry : view.drain_end - now);
  json.Member("last_reason", lease::ReasonName(view.last_reason));
  json.Member("step_down_in_progress", view.step_down_in_progress);
  json.Member("app_ready", view.app_ready).Member("store_ok", view.store_ok);
  json.Member("store_answered_within_ttl", lease.store_answered_within_ttl);
  json.Key("failed_rounds").Int(view.failed_rounds);
  WriteOrNull(json, "last_error", view.last_error);
  WriteOrNull(json, "not_competing", view.not_competing);
  WriteRecord(json, view.seen);
  WriteTiming(json, lease.timing);
  json.Key("gates").BeginArray();
  for (const GateView& gate : lease.gates) WriteGate(json, gate);
  json.EndArray().EndObject();
}

void WriteNode(JsonWriter& json, const NodeView& node) {
  json.BeginObject().Member("node_id", node.node_id).Member("process_id", node.process_id);
  json.Member("version", node.version).Member("store", node.store);
  json.Member("store_connected", node.store_connected).Member("app_checked", node.app_checked);
  json.Member("app_ready", node.app_ready);
  WriteOrNull(json, "app_error", node.app_error);
  json.Member("started_at", base::FormatWallTime(node.started_at));
  WriteMillis(json, "uptime_ms", node.uptime);
  json.Member("shutting_down", node.shutting_down).Key("troubles").BeginArray();
  for (const std::string& trouble : node.troubles) json.String(trouble);
  json.EndArray().EndObject();
}

std::string LeaseJson(const LeaseView& lease, const NodeView& node, base::MonoTime now) {
  std::string out;
  JsonWriter json(out);
  WriteLease(json, lease, node, now);
  return out;
}

std::string LeasesJson(const Control& control, base::MonoTime now) {
  std::string out;
  JsonWriter json(out);
  const NodeView node = control.node();
  json.BeginObject().Key("leases").BeginArray();
  for (const LeaseView& lease : control.leases()) WriteLease(json, lease, node, now);
  json.EndArray().EndObject();
  return out;
}

std::string StatusJson(const Control& control, base::MonoTime now) {
  std::string out;
  JsonWriter json(out);
  const NodeView node = control.node();
  json.BeginObject().Key("node");
  WriteNode(json, node);
  json.Key("leases").BeginArray();
  for (const LeaseView& lease : control.leases()) WriteLease(json, lease, node, now);
  json.EndArray().EndObject();
  return out;
}

void WriteHello(JsonWriter& json, const Control& control, std::string_view lease,
                base::MonoTime now) {
  const NodeView node = control.node();
  json.Member("version", node.version).Member("node_id", node.node_id);
  json.Member("process_id", node.process_id).Key("leases").BeginArray();
  for (const LeaseView& view : control.leases()) {
    if (lease.empty() || view.view.lease == lease) WriteLease(json, view, node, now);
  }
  json.EndArray();
}

HolderView HolderOf(const LeaseView& lease, const NodeView& node) {
  if (lease.may_act) return {node.node_id, node.process_id, lease.view.token};
  const std::optional<lease::Record>& seen = lease.view.seen;
  // Our own record without a permit is a term that is over: nobody acts under it.
  if (!seen || !seen->held() || seen->process_id == node.process_id) return {};
  return {seen->node_id, seen->process_id, seen->token};
}

std::string DescribeJson(const LeaseView& lease, const NodeView& node) {
  std::string out;
  JsonWriter json(out);
  const HolderView holder = HolderOf(lease, node);
  json.BeginObject().Member("lease", lease.view.lease).Member("node_id", holder.node_id);
  json.Key("token").Token(holder.token).Member("process_id", holder.process_id);
  json.Member("this_process", lease.may_act);
  json.Member("state", lease::StateName(lease.view.state)).EndObject();
  return out;
}

void WriteStepDownOutcome(JsonWriter& json, const lease::StepDownDone& done, const NodeView& node) {
  json.Member("outcome", lease::OutcomeName(done.outcome)).Member("detail", done.detail);
  json.Member("expected_node_id", done.expected.node_id);
  json.Key("expected_token").Token(done.expected.token).Member("node_id", node.node_id);
  WriteToken(json, "released_token", done.released_token);
  json.Member("hold_off", base::FormatDuration(done.hold_off));
  WriteToken(json, "active_token", done.token);
  WriteOrNull(json, "active_node_id", done.node_id);
  WriteOrNull(json, "active_process_id", done.process_id);
}

bool StepDownSucceeded(lease::StepDownDone::Outcome outcome) {
  return outcome == lease::StepDownDone::Outcome::kTakenOver ||
         outcome == lease::StepDownDone::Outcome::kTakenBack;
}

std::string_view StepDownErrorCode(lease::StepDownDone::Outcome outcome) {
  switch (outcome) {
    case lease::StepDownDone::Outcome::kFailedPrecondition: return "failed_precondition";
    case lease::StepDownDone::Outcome::kNotHolder: return "not_holder";
    case lease::StepDownDone::Outcome::kUnknown: return "unknown";
    case lease::StepDownDone::Outcome::kTakenOver:
    case lease::StepDownDone::Outcome::kTakenBack: return "";
  }
  return "unknown";
}

std::string StepDownSentence(const lease::StepDownDone& done, const std::string& lease) {
  if (!done.detail.empty()) return done.detail;
  const std::string expected =
      "node id \"" + done.expected.node_id + "\" and token " + std::to_string(done.expected.token);
  switch (done.outcome) {
    case lease::StepDownDone::Outcome::kFailedPrecondition:
      return "this process does not hold lease \"" + lease + "\" under " + expected +
             "; nothing was changed";
    case lease::StepDownDone::Outcome::kNotHolder:
      return "this process does not hold lease \"" + lease + "\"; nothing was changed";
    case lease::StepDownDone::Outcome::kUnknown:
      return "it is not known who holds lease \"" + lease + "\" now; a retry must expect " +
             expected + " again";
    case lease::StepDownDone::Outcome::kTakenOver:
      return "lease \"" + lease + "\" was taken over by another process";
    case lease::StepDownDone::Outcome::kTakenBack:
      return "nobody took lease \"" + lease + "\", so this process took it back";
  }
  return "lease \"" + lease + "\": no outcome";
}

}  // namespace leasehold::admin
