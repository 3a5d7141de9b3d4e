#include "simulation/cases/case_world.h"

#include <algorithm>
#include <utility>

namespace leasehold::simulation {
namespace {

constexpr size_t kTraceLines = 60;  // of a case that a checker failed

class Nobody final : public Judge {  // the journal demands nothing
 public:
  void Violate(const std::string&, const std::string&) override {}
};

gate::Options Web(size_t index, const lease::Timing& timing) {
  gate::Options web;
  web.name = "web";
  web.lease = kLeaseName;
  web.listen = {base::Address::Kind::kTcp, "127.0.0.1", 8080, ""};
  web.upstream = {base::Address::Kind::kTcp, "127.0.0.1", 8000, ""};
  web.standby = gate::StandbyPolicy::kForward;
  web.peer_listen = {base::Address::Kind::kTcp, "10.0.0." + std::to_string(index), 8081, ""};
  web.hold_timeout =
      timing.grace + timing.hold_off + timing.poll_interval + base::Duration::Millis(500);
  return web;
}

}  // namespace

void CaseWorld::Nodes(size_t count, base::Duration ttl) {
  scenario_.seed = 1;
  scenario_.kind = Kind::kScripted;
  scenario_.ttl = scenario_.ttl_max = ttl.nanos();
  scenario_.store.typical = kLeg;
  scenario_.store.steady = true;
  scenario_.listeners = Scenario::Listeners::kNone;
  Clients(20);
  for (size_t i = 0; i < count; ++i) {
    NodePlan node;
    node.options.name = kLeaseName;
    node.options.ttl = ttl;
    node.options.step_down_grace = ttl / 2;
    node.options.step_down_hold_off = ttl / 2 + base::Duration::Millis(300);
    node.node_id = "n" + std::to_string(i);
    node.clock_offset_ns = kSecond;
    node.starts_at = static_cast<TrueNs>(i + 1) * Ms(100);
    node.unready_after = ttl.nanos() / 2;
    node.gates = {Web(i, lease::Derive(node.options))};
    scenario_.nodes.push_back(std::move(node));
  }
}

void CaseWorld::ForAll(const std::function<void(NodePlan&)>& change) {
  std::for_each(scenario_.nodes.begin(), scenario_.nodes.end(), change);
}

void CaseWorld::Clients(double requests_per_second) {
  scenario_.requests_per_ttl = requests_per_second * static_cast<double>(scenario_.ttl) / 1e9;
}

void CaseWorld::Run(TrueNs until) {
  scenario_.faults_end = until;
  SetEnd(scenario_);
  RunOptions options;
  options.trace = true;
  options.trace_lines = kTraceLines;
  options.check_replay = true;
  static Nobody nobody;
  auto journal = std::make_unique<Journal>(nobody);
  world_ = std::make_unique<World>(scenario_, options);
  journal_ = journal.get();
  world_->Add(std::move(journal));
  for (auto& [when, script] : script_) world_->At(when, script);
  const Outcome outcome = world_->Run();
  if (!outcome.violation) return;
  std::string trace;
  for (const std::string& line : outcome.trace) trace += line + "\n";
  ADD_FAILURE() << "rule: " << outcome.violation->rule << "\nwhat: " << outcome.violation->detail
                << "\n"
                << trace;
}

void CaseWorld::StepDownHolder(bool take_back) {
  const int holder = HolderNow();
  ASSERT_GE(holder, 0) << "nobody holds at " << Seconds(world().now());
  const uint64_t token = node(holder).engine()->permit().token();
  node(holder).AskStepDown({node(holder).plan().node_id, token}, take_back);
}

void CaseWorld::Overwrite(const std::function<void(lease::Record&)>& change) {
  const Register::Entry* entry = world().store().current();
  ASSERT_NE(entry, nullptr) << "there is no record to overwrite";
  lease::Record record = entry->record;
  const lease::Version version = entry->version;
  change(record);
  ASSERT_TRUE(world().store().CompareAndSet(world().now(), version, record));
}

int CaseWorld::HolderNow() {
  for (int i = 0; i < static_cast<int>(scenario_.nodes.size()); ++i) {
    if (node(i).MayAct()) return i;
  }
  return -1;
}

}  // namespace leasehold::simulation
