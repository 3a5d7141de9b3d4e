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
  // What https is checked against: AWS_CA_BUNDLE, the profile's ca_bundle; empty: the system's.
  std::string ca_file = {};
  std::string ToString() const;  // "https://sqs.eu-central-1.amazonaws.com"
};

// Errors (kInvalid) name what is missing and the places where it may be written. An endpoint
// without any region is signed for "us-east-1", as emulators do not look; AWS's own hosts say
// theirs. The endpoint: options.endpoint; AWS_ENDPOINT_URL_<SERVICE>; AWS_ENDPOINT_URL; the
// profile's services section; its endpoint_url (the last four not with
// AWS_IGNORE_CONFIGURED_ENDPOINT_URLS); else the region's own, of its partition (aws, aws-cn,
// aws-us-gov, ...), with AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT (or the profile's
// use_fips_endpoint, use_dualstack_endpoint) heeded. Together with an endpoint that somebody wrote
// down those two mean nothing: it is taken as it is (AWS's SDKs refuse the pair). The region:
// options.region; AWS_REGION; AWS_DEFAULT_REGION; the profile's; of an AWS host's name.
base::Result<Endpoint> ResolveEndpoint(const ServiceOptions& options,
                                       const Environment& environment, const Profiles& profiles);

// "true" or "false", in any case, of the variable or else of the profile's setting; false where
// neither is there. kInvalid names the one that is something else.
base::Result<bool> ReadSwitch(const Environment& environment, const std::string& variable,
                              const Profile* profile, const std::string& setting);

// An endpoint as somebody writes it down: http:// or https://, host, port, and a path. kInvalid
// names `what` ("AWS_ENDPOINT_URL") and what would be right.
base::Result<Endpoint> ParseEndpoint(const std::string& url, const std::string& what);

// STS has a rule of its own: with AWS_STS_REGIONAL_ENDPOINTS (sts_regional_endpoints) "legacy", or
// without any region, it is the one of us-east-1 that answers for all the partition "aws".
base::Result<Endpoint> ResolveSts(const std::string& region, const std::string& profile,
                                  const Environment& environment, const Profiles& profiles);

}  // namespace leasehold::aws
