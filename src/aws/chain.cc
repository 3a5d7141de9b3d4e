#include "aws/chain.h"

#include <utility>

#include "aws/chain_source.h"
#include "aws/credentials_cache.h"

namespace leasehold::aws {

std::unique_ptr<CredentialsProvider> MakeChain(loop::Loop& loop, const ChainOptions& options,
                                               const Environment& environment, uint64_t seed,
                                               observe::Log& log) {
  SourceContext context{.loop = loop,
                        .environment = environment,
                        .profile = options.profile,
                        .region = options.region,
                        .random = base::Random(seed)};
  return std::make_unique<CredentialsCache>(loop, std::make_unique<ChainSource>(std::move(context)),
                                            seed + 1, log);
}

}  // namespace leasehold::aws
