// AwsAccess: how this process gets at AWS: where a service is, and with whose credentials. One for
// the process, made by the first store or gate that needs it, so that a program without AWS reads
// none of its files; stores and gates of one profile share one credentials provider. Owned by
// Sidecar; outlived by nobody.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "aws/credentials.h"
#include "aws/endpoint.h"
#include "aws/environment.h"
#include "aws/profile.h"
#include "base/result.h"
#include "loop/loop.h"
#include "observe/log.h"

namespace leasehold::app {

class AwsAccess {
 public:
  AwsAccess(loop::Loop& loop, observe::Log& log) : loop_(loop), log_(log) {}

  struct Service {
    aws::Endpoint endpoint;
    std::shared_ptr<aws::CredentialsProvider> credentials;
  };
  // Asks nobody yet: credentials are fetched with the first call. The error says which file cannot
  // be read, or what is missing and where it may be written.
  base::Result<Service> For(const aws::ServiceOptions& options);

 private:
  base::Status Look();

  loop::Loop& loop_;
  observe::Log& log_;
  aws::Environment environment_;
  std::optional<aws::Profiles> profiles_;
  // By profile and region (STS is asked in the region of who needs it).
  std::map<std::pair<std::string, std::string>, std::shared_ptr<aws::CredentialsProvider>> shared_;
};

}  // namespace leasehold::app
