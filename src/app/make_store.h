// MakeStore: the store adapter that `store.type` names. The one place that knows them all; a new
// adapter is one line.
#pragma once

#include <memory>
#include <string>

#include "app/aws_access.h"
#include "base/result.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "store/lease_store.h"
#include "store/options.h"

namespace leasehold::app {

// `options.type` has been checked by config. An error: where the store is cannot be made out (no
// region, a broken profile file).
base::Result<std::unique_ptr<store::LeaseStore>> MakeStore(loop::Loop& loop,
                                                           const store::Options& options,
                                                           const std::string& process_id,
                                                           AwsAccess& aws, observe::Log& log);

}  // namespace leasehold::app
