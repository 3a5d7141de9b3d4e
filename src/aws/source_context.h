// SourceContext: what all sources of one chain are given: the loop, the surroundings, and where and
// how long to ask. Owned by the chain, which outlives its sources' fetches.
#pragma once

#include <functional>
#include <string>

#include "aws/environment.h"
#include "aws/source_http.h"
#include "base/random.h"
#include "base/time.h"
#include "loop/loop.h"

namespace leasehold::aws {

struct SourceContext {
  loop::Loop& loop;
  Environment environment;
  std::string profile;  // as the options name it; empty: the environment's
  std::string region;   // for STS; empty: the environment's or the profile's
  base::Random random;

  // Time-outs and attempts of the AWS SDKs, where they are documented; else as said.
  // IMDS: 1 s ("metadata_service_timeout"); three attempts, of which the first question has two,
  // so that a machine without IMDS has its answer within 2.5 s.
  HttpPolicy imds = {.attempts = 3, .timeout = base::Duration::Seconds(1)};
  // 2 s and three attempts: botocore's.
  HttpPolicy container = {.attempts = 3, .timeout = base::Duration::Seconds(2)};
  // A role that was just made is not known everywhere for some seconds; IAM's own advice is to
  // repeat.
  HttpPolicy sts = {
      .attempts = 3, .timeout = base::Duration::Seconds(5), .pause = base::Duration::Millis(500)};
  // A command may have to ask a server far away.
  base::Duration process_timeout = base::Duration::Seconds(20);
  // Where containers of ECS find theirs, and EC2 instances.
  std::string container_endpoint = "http://169.254.170.2";
  std::string imds_endpoint = "http://169.254.169.254";
  std::string imds_endpoint_ipv6 = "http://[fd00:ec2::254]";
};

}  // namespace leasehold::aws
