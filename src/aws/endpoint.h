// Where a service is: region and endpoint from options, environment and profile, in AWS's order.
// Pure but for the profile files, which the caller has read (profile.h). Source: "AWS SDKs and
// Tools Reference Guide": service-specific endpoints, dual-stack and FIPS endpoints, AWS Region.
#pragma once

#include <string>

#include "aws/environment.h"
#include "aws/profile.h"
#include "base/address.h"
#include "base/result.h"

namespace leasehold::aws {

// What sidecar.conf says; empty: the environment's or the profile's.
struct ServiceOptions {
  std::string service;   // "dynamodb", "sqs", "sts": also the signing name
  std::string region;    // "eu-central-1"
  std::string endpoint;  // "http://127.0.0.1:8000", "https://sqs.eu-central-1.amazonaws.com"
  std::string profile;   // of the shared files; empty: AWS_PROFILE, else "default"
};

struct Endpoint {
  bool tls = true;
  base::Address address;
  std::string host_header;  // with the port unless it is the scheme's own
  std::string base_path;  // "" or "/prefix" without a slash at its end: before every request's path
  std::string region;     // to sign for
  std::string service;
  std::string ToString() const;  // "https://sqs.eu-central-1.amazonaws.com"
};

// Errors (kInvalid) name what is missing and the places where it may be written. An endpoint
// without any region is signed for "us-east-1", as emulators do not look; AWS's own hosts say
// theirs. The endpoint: options.endpoint; AWS_ENDPOINT_URL_<SERVICE>; AWS_ENDPOINT_URL; the
// profile's services section; its endpoint_url (the last four not with
// AWS_IGNORE_CONFIGURED_ENDPOINT_URLS); else the region's own, of its partition (aws, aws-cn,
// aws-us-gov, ...), with AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT heeded. The region:
// options.region; AWS_REGION; AWS_DEFAULT_REGION; the profile's; of an AWS host's name.
base::Result<Endpoint> ResolveEndpoint(const ServiceOptions& options,
                                       const Environment& environment, const Profiles& profiles);

}  // namespace leasehold::aws
