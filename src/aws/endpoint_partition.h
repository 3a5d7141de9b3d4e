// Partition: which of AWS's separate worlds a region belongs to, and how hosts are named there.
// Values only. Source: partitions.json, which all of AWS's SDKs carry, and the endpoint rule sets
// of DynamoDB, SQS and STS, which are of one form.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leasehold::aws {

struct Partition {
  std::string_view name;               // "aws", "aws-cn", ...
  std::string_view region_prefix;      // of its regions
  std::string_view dns_suffix;         // "amazonaws.com"
  std::string_view dual_stack_suffix;  // "api.aws"
};

// A region that we do not know is of "aws", as in the SDKs: new ones come often.
const Partition& PartitionOf(std::string_view region);

struct HostForm {
  bool fips = false;
  bool dual_stack = false;
};
std::string HostOf(std::string_view service, std::string_view region, HostForm form);

// The region in the name of a host of AWS's: "sqs.eu-central-1.amazonaws.com",
// "vpce-0a1b.sqs.eu-central-1.vpce.amazonaws.com". nullopt: it is not AWS's, or names none.
std::optional<std::string> RegionOfHost(std::string_view host);

// Small letters, digits and '-', at most 64: what may become a part of a host's name.
bool IsRegionName(std::string_view text);

}  // namespace leasehold::aws
