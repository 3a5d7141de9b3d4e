// The words that the API and the signal socket use for what Control shows: status, leases, gates,
// the outcome of a step-down. One place, so that both say the same. Not the routes (routes.h), not
// the socket's protocol (signal_protocol.h). Invariants: tokens are decimal strings; states are
// lease::StateName; "holding" is LeaseView::may_act and nothing else.
#pragma once

#include <string>
#include <vector>

#include "admin/control.h"
#include "base/json_writer.h"
#include "base/time.h"
#include "lease/events.h"

namespace leasehold::admin {

// {"lease":"orders","state":"active","holding":true,"at_risk":false,"token":"12",
//  "holder":{...}|null,"expires_in_ms":7100|null,...,"timing":{...},"gates":[...]}.
// `now` is a fresh reading of the boot clock, for spans.
void WriteLease(base::JsonWriter& json, const LeaseView& lease, const NodeView& node,
                base::MonoTime now);
void WriteNode(base::JsonWriter& json, const NodeView& node);

std::string LeaseJson(const LeaseView& lease, const NodeView& node, base::MonoTime now);
std::string LeasesJson(const Control& control, base::MonoTime now);  // {"leases":[...]}
std::string StatusJson(const Control& control,
                       base::MonoTime now);  // {"node":{...},"leases":[...]}

// What a listener is greeted with, without braces: version, node_id, process_id and "leases", of
// which only `lease` is shown unless that is empty.
void WriteHello(base::JsonWriter& json, const Control& control, std::string_view lease,
                base::MonoTime now);

// Who holds a lease, as this process knows it: itself by its permit, else the record as last seen.
// node_id is empty when nobody does.
struct HolderView {
  std::string node_id;
  std::string process_id;
  uint64_t token = 0;
};
HolderView HolderOf(const LeaseView& lease, const NodeView& node);
// {"lease":...,"node_id":...,"token":...,"process_id":...,"this_process":true,"state":...}
std::string DescribeJson(const LeaseView& lease, const NodeView& node);

// The members of a step-down's outcome, without braces around them: outcome, detail,
// expected_node_id, expected_token, node_id, released_token, hold_off, active_token,
// active_node_id, active_process_id. What is unknown is null.
void WriteStepDownOutcome(base::JsonWriter& json, const lease::StepDownDone& done,
                          const NodeView& node);
// Did it do what was asked: released, and known who holds now?
bool StepDownSucceeded(lease::StepDownDone::Outcome outcome);
// "failed_precondition", "not_holder", "unknown": the closed list of how one fails; "" for success.
std::string_view StepDownErrorCode(lease::StepDownDone::Outcome outcome);
// One sentence for people, never empty: the engine's detail or, without one, ours.
std::string StepDownSentence(const lease::StepDownDone& done, const std::string& lease);

}  // namespace leasehold::admin
