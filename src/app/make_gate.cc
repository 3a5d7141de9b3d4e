#include "app/make_gate.h"

#include <utility>

#include "base/check.h"
#include "gate/sqs_gate.h"

namespace leasehold::app {

base::Result<std::unique_ptr<gate::Gate>> MakeGate(const gate::Options& options, gate::Host host,
                                                   AwsAccess& aws) {
  switch (options.type) {
    case gate::Type::kTcp: return gate::MakeTcpGate(options, std::move(host));
    case gate::Type::kHttp: return gate::MakeHttpGate(options, std::move(host));
    case gate::Type::kSqs: break;
  }
  base::Result<AwsAccess::Service> service =
      aws.For({"sqs", options.sqs.region, options.sqs.endpoint, options.sqs.profile});
  if (!service) return service.error();
  return gate::MakeSqsGate(options, std::move(host), service->credentials, service->endpoint);
}

}  // namespace leasehold::app
