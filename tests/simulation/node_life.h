// Node::Life: what ends with a process. For node.cc and node_faults.cc alone.
#pragma once

#include <memory>
#include <vector>

#include "loop/loop.h"
#include "loop/timer.h"
#include "observe/event.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simulation/node.h"

namespace leasehold::simulation {

struct Node::Life {
  explicit Life(World& world, Node& node, const Process& process) : store(world, node, process) {}

  loop::Loop loop;
  std::unique_ptr<observe::Log> log = observe::Log::Silent();
  observe::Metrics metrics;
  observe::EventBus events{1};
  SimStore store;
  app::LostTimeDetector lost_time;
  std::unique_ptr<app::LeaseDriver> driver;
  std::vector<SimGate*> gates;  // the driver's
  std::unique_ptr<loop::Timer> clock_watch;

  // The latest store call, for StepFact.
  uint64_t latest_op = 0;
  base::MonoTime latest_deadline;
  PermitShot shot;
  int steps_at_once = 0;
  TrueNs last_step_at = -1;

  // One listener at the signal socket, or none, as drawn for each drain.
  uint64_t listener_waits_for = 0;  // token of the drain; 0: nobody is waited for
  uint64_t drains = 0;
  uint64_t open_asks = 0;  // step-downs asked for and not answered
};

}  // namespace leasehold::simulation
