// MakeGate: the gate that `gate.type` names. The one place that knows them all; a new gate is one
// line.
#pragma once

#include <memory>

#include "app/aws_access.h"
#include "base/result.h"
#include "gate/gate.h"
#include "gate/options.h"

namespace leasehold::app {

// An error: where the gate's upstream is cannot be made out (no region, a broken profile file).
base::Result<std::unique_ptr<gate::Gate>> MakeGate(const gate::Options& options, gate::Host host,
                                                   AwsAccess& aws);

}  // namespace leasehold::app
