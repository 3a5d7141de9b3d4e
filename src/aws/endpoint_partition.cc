#include "aws/endpoint_partition.h"

#include <array>
#include <vector>

#include "base/text.h"

namespace leasehold::aws {
namespace {

constexpr size_t kRegionBytesMax = 64;  // the longest today has 16; a label of a name has 63

// The first whose prefix fits; the last takes the rest.
constexpr std::array<Partition, 8> kPartitions = {{
    {"aws-cn", "cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
    {"aws-us-gov", "us-gov-", "amazonaws.com", "api.aws"},
    {"aws-iso", "us-iso-", "c2s.ic.gov", "api.aws.ic.gov"},
    {"aws-iso-b", "us-isob-", "sc2s.sgov.gov", "api.aws.scloud"},
    {"aws-iso-e", "eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
    {"aws-iso-f", "us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
    {"aws-eusc", "eusc-", "amazonaws.eu", "api.amazonwebservices.eu"},
    {"aws", "", "amazonaws.com", "api.aws"},
}};

// "eu-central-1", "us-gov-west-1": at least three parts, the last a number.
bool LooksLikeRegion(std::string_view label) {
  const std::vector<std::string_view> parts = base::Split(label, '-');
  if (parts.size() < 3) return false;
  for (const std::string_view part : parts) {
    if (part.empty()) return false;
  }
  return parts.back().find_first_not_of("0123456789") == std::string_view::npos &&
         parts.front().find_first_of("0123456789") == std::string_view::npos && IsRegionName(label);
}

}  // namespace

const Partition& PartitionOf(std::string_view region) {
  for (const Partition& partition : kPartitions) {
    if (region.starts_with(partition.region_prefix)) return partition;
  }
  return kPartitions.back();
}

std::string HostOf(std::string_view service, std::string_view region, HostForm form) {
  const Partition& partition = PartitionOf(region);
  // In GovCloud the ordinary endpoints are the FIPS ones; only the dual-stack ones are two.
  const bool named_fips = form.fips && (form.dual_stack || partition.name != "aws-us-gov");
  std::string host(service);
  if (named_fips) host += "-fips";
  host.append(".").append(region).append(".");
  return host.append(form.dual_stack ? partition.dual_stack_suffix : partition.dns_suffix);
}

std::optional<std::string> RegionOfHost(std::string_view host) {
  const std::string lower = base::ToLower(host);
  for (const Partition& partition : kPartitions) {
    for (const std::string_view suffix : {partition.dns_suffix, partition.dual_stack_suffix}) {
      const std::string ending = "." + std::string(suffix);
      if (!lower.ends_with(ending)) continue;
      const std::string before = lower.substr(0, lower.size() - ending.size());
      for (const std::string_view label : base::Split(before, '.')) {
        if (label.starts_with("vpce-")) continue;  // an endpoint's own name, which has dashes too
        if (LooksLikeRegion(label)) return std::string(label);
      }
    }
  }
  return std::nullopt;
}

bool IsRegionName(std::string_view text) {
  return !text.empty() && text.size() <= kRegionBytesMax && text.front() != '-' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

}  // namespace leasehold::aws
