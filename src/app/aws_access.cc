#include "app/aws_access.h"

#include <utility>

#include "aws/chain.h"

namespace leasehold::app {

base::Status AwsAccess::Look() {
  if (profiles_.has_value()) return {};
  environment_ = aws::Environment::OfProcess();
  base::Result<aws::Profiles> profiles = aws::ReadProfiles(environment_);
  if (!profiles) return profiles.error();
  profiles_ = std::move(profiles).value();
  return {};
}

base::Result<AwsAccess::Service> AwsAccess::For(const aws::ServiceOptions& options) {
  if (const base::Status looked = Look(); !looked) return looked.error();
  base::Result<aws::Endpoint> endpoint = aws::ResolveEndpoint(options, environment_, *profiles_);
  if (!endpoint) return endpoint.error();
  auto& credentials = shared_[{options.profile, options.region}];
  if (!credentials) {
    credentials = aws::MakeChain(loop_, {options.profile, options.region}, environment_,
                                 loop::Loop::Entropy(), log_);
  }
  return Service{std::move(endpoint).value(), credentials};
}

}  // namespace leasehold::app
