// ChainSource: the chain as one source. Each fetch looks anew which source is configured, reading
// the shared files on a worker thread, and asks that one alone. Owned by the provider of MakeChain.
#pragma once

#include <memory>
#include <string>

#include "aws/credentials_source.h"
#include "aws/profile.h"
#include "aws/source_context.h"

namespace leasehold::aws {

class ChainSource final : public CredentialsSource {
 public:
  explicit ChainSource(SourceContext context) : context_(std::move(context)) {}

  std::unique_ptr<Fetching> Fetch(FetchDone done) override;
  std::string Describe() const override;

 private:
  class Chosen;
  SourceContext context_;
};

}  // namespace leasehold::aws
