#include "aws/endpoint.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "aws/endpoint_partition.h"
#include "base/text.h"
#include "proto/url.h"

namespace leasehold::aws {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

// What is signed for where no region is known and nobody looks at it.
constexpr std::string_view kFallbackRegion = "us-east-1";

struct Written {
  std::string text;
  std::string where;  // "AWS_REGION", "region of profile \"orders\"": for messages
};

std::string OfProfile(const std::string& setting, const std::string& profile) {
  return setting + " of profile \"" + base::Printable(profile) + "\"";
}

// One lookup's view of the world.
struct Sight {
  const ServiceOptions& options;
  const Environment& environment;
  const Profiles& profiles;
  std::string profile_name = ProfileName(options.profile, environment);
  const Profile* profile = profiles.Find(profile_name);

  std::optional<Written> Variable(const std::string& name) const {
    const auto value = environment.Get(name);
    return value ? std::optional<Written>({*value, name}) : std::nullopt;
  }
  std::optional<Written> Setting(const std::string& name) const {
    const auto value = profile == nullptr ? std::nullopt : profile->Get(name);
    return value ? std::optional<Written>({*value, OfProfile(name, profile_name)}) : std::nullopt;
  }
};

std::optional<Written> FindRegion(const Sight& sight) {
  if (!sight.options.region.empty()) return Written{sight.options.region, "region"};
  if (auto found = sight.Variable("AWS_REGION")) return found;
  if (auto found = sight.Variable("AWS_DEFAULT_REGION")) return found;
  return sight.Setting("region");
}

// "AWS_ENDPOINT_URL_DYNAMODB".
std::string ServiceVariable(const std::string& service) {
  std::string name = "AWS_ENDPOINT_URL_";
  for (const char c : service) {
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

Result<std::optional<Written>> OfServicesSection(const Sight& sight) {
  const std::optional<Written> named = sight.Setting("services");
  if (!named) return std::optional<Written>();
  const auto section = sight.profiles.services.find(named->text);
  if (section == sight.profiles.services.end()) {
    return Error{ErrorCode::kInvalid, named->where + " names \"" + base::Printable(named->text) +
                                          "\", but " + base::Printable(sight.profiles.config_path) +
                                          " has no [services " + base::Printable(named->text) +
                                          "]"};
  }
  const auto service = section->second.nested.find(sight.options.service);
  if (service == section->second.nested.end()) return std::optional<Written>();
  const auto url = service->second.find("endpoint_url");
  if (url == service->second.end() || url->second.empty()) return std::optional<Written>();
  return std::optional<Written>({url->second, "endpoint_url of " + sight.options.service +
                                                  " in [services " + base::Printable(named->text) +
                                                  "]"});
}

Result<std::optional<Written>> FindEndpoint(const Sight& sight) {
  if (!sight.options.endpoint.empty()) {
    return std::optional<Written>({sight.options.endpoint, "endpoint"});
  }
  const Result<bool> ignored = ReadSwitch(sight.environment, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
                                          sight.profile, "ignore_configured_endpoint_urls");
  if (!ignored) return ignored.error();
  if (*ignored) return std::optional<Written>();
  if (auto found = sight.Variable(ServiceVariable(sight.options.service))) return found;
  if (auto found = sight.Variable("AWS_ENDPOINT_URL")) return found;
  Result<std::optional<Written>> found = OfServicesSection(sight);
  if (!found || found->has_value()) return found;
  return sight.Setting("endpoint_url");
}

Error NoRegion(const Sight& sight) {
  std::string files = "in no file, as there is no HOME";
  if (!sight.profiles.config_path.empty()) {
    files = "for profile \"" + base::Printable(sight.profile_name) + "\" in " +
            base::Printable(sight.profiles.config_path) +
            (sight.profile == nullptr ? ", which has no such profile" : "");
  }
  return {ErrorCode::kInvalid,
          sight.options.service +
              ": no region is given, neither in sidecar.conf (region) nor in AWS_REGION or "
              "AWS_DEFAULT_REGION, nor " +
              files + "; write one, for example \"eu-central-1\""};
}

// Old names for a FIPS endpoint: "fips-us-east-1", "us-east-1-fips".
bool StripFips(std::string& region) {
  if (region.starts_with("fips-")) {
    region.erase(0, 5);
    return true;
  }
  if (!region.ends_with("-fips")) return false;
  region.erase(region.size() - 5);
  return true;
}

std::string HostHeader(const Endpoint& endpoint) {
  const bool own_port = endpoint.address.port == (endpoint.tls ? 443 : 80);
  const std::string all = endpoint.address.ToString();
  return own_port ? all.substr(0, all.rfind(':')) : all;
}

Endpoint OfHost(const std::string& host) {
  Endpoint endpoint;
  endpoint.address.host = host;
  endpoint.address.port = 443;
  endpoint.host_header = host;
  return endpoint;
}

Result<Endpoint> Standard(const Sight& sight, const std::optional<Written>& region) {
  if (!region) return NoRegion(sight);
  const Result<bool> fips =
      ReadSwitch(sight.environment, "AWS_USE_FIPS_ENDPOINT", sight.profile, "use_fips_endpoint");
  if (!fips) return fips.error();
  const Result<bool> dual = ReadSwitch(sight.environment, "AWS_USE_DUALSTACK_ENDPOINT",
                                       sight.profile, "use_dualstack_endpoint");
  if (!dual) return dual.error();
  std::string name = region->text;
  const bool fips_name = StripFips(name);
  Endpoint endpoint = OfHost(HostOf(sight.options.service, name, {*fips || fips_name, *dual}));
  endpoint.region = name;
  return endpoint;
}

}  // namespace

std::string Endpoint::ToString() const {
  return (tls ? "https://" : "http://") + host_header + base_path;
}

Result<bool> ReadSwitch(const Environment& environment, const std::string& variable,
                        const Profile* profile, const std::string& setting) {
  std::optional<std::string> text = environment.Get(variable);
  const bool of_environment = text.has_value();
  if (!text && profile != nullptr) text = profile->Get(setting);
  if (!text || base::EqualsIgnoreCase(*text, "false")) return false;
  if (base::EqualsIgnoreCase(*text, "true")) return true;
  return Error{ErrorCode::kInvalid, (of_environment ? variable : "the profile's " + setting) +
                                        " is \"" + base::Printable(*text) +
                                        "\"; true or false would be right"};
}

Result<Endpoint> ParseEndpoint(const std::string& url, const std::string& what) {
  const Result<proto::Url> parsed = proto::ParseUrl(url);
  if (!parsed) return Error{ErrorCode::kInvalid, what + ": " + parsed.error().message};
  const bool tls = parsed->scheme == "https";
  if (!tls && parsed->scheme != "http") {
    return Error{ErrorCode::kInvalid,
                 what + ": " + parsed->ToString() + " must begin with http:// or https://"};
  }
  if (!parsed->user.empty() || parsed->has_password) {
    return Error{ErrorCode::kInvalid, what + ": " + parsed->ToString() +
                                          " has a user in it; AWS's credentials have places of "
                                          "their own"};
  }
  Endpoint endpoint;
  endpoint.tls = tls;
  endpoint.address = parsed->address();
  endpoint.host_header = HostHeader(endpoint);
  endpoint.base_path = parsed->path;
  return endpoint;
}

Result<Endpoint> ResolveEndpoint(const ServiceOptions& options, const Environment& environment,
                                 const Profiles& profiles) {
  const Sight sight{options, environment, profiles};
  const std::optional<Written> region = FindRegion(sight);
  if (region && !IsRegionName(region->text)) {
    return Error{ErrorCode::kInvalid, region->where + " is \"" + base::Printable(region->text) +
                                          "\", which is no AWS region, like \"eu-central-1\""};
  }
  const Result<std::optional<Written>> written = FindEndpoint(sight);
  if (!written) return written.error();
  Result<Endpoint> endpoint = written->has_value()
                                  ? ParseEndpoint((*written)->text, (*written)->where)
                                  : Standard(sight, region);
  if (!endpoint) return endpoint;
  if (written->has_value()) {
    if (endpoint->base_path.find('?') != std::string::npos) {
      return Error{ErrorCode::kInvalid,
                   (*written)->where +
                       ": an endpoint has no query; scheme, host, port and a path "
                       "would be right"};
    }
    while (endpoint->base_path.ends_with('/')) endpoint->base_path.pop_back();
    std::string name = region ? region->text : "";
    StripFips(name);
    if (name.empty()) name = RegionOfHost(endpoint->address.host).value_or("");
    endpoint->region = name.empty() ? kFallbackRegion : name;
  }
  endpoint->service = options.service;
  std::optional<Written> bundle = sight.Variable("AWS_CA_BUNDLE");
  if (!bundle) bundle = sight.Setting("ca_bundle");
  if (bundle) endpoint->ca_file = bundle->text;
  return endpoint;
}

Result<Endpoint> ResolveSts(const std::string& region, const std::string& profile,
                            const Environment& environment, const Profiles& profiles) {
  const ServiceOptions options{"sts", region, "", profile};
  const Sight sight{options, environment, profiles};
  std::optional<Written> found = FindRegion(sight);
  std::optional<Written> way = sight.Variable("AWS_STS_REGIONAL_ENDPOINTS");
  if (!way) way = sight.Setting("sts_regional_endpoints");
  if (way && !base::EqualsIgnoreCase(way->text, "legacy") &&
      !base::EqualsIgnoreCase(way->text, "regional")) {
    return Error{ErrorCode::kInvalid, way->where + " is \"" + base::Printable(way->text) +
                                          "\"; regional or legacy would be right"};
  }
  // The regions that had no endpoint of their own when there was only the one.
  constexpr std::array<std::string_view, 16> kOfOld = {
      "ap-northeast-1", "ap-south-1",   "ap-southeast-1", "ap-southeast-2",
      "aws-global",     "ca-central-1", "eu-central-1",   "eu-north-1",
      "eu-west-1",      "eu-west-2",    "eu-west-3",      "sa-east-1",
      "us-east-1",      "us-east-2",    "us-west-1",      "us-west-2"};
  const bool legacy = way && base::EqualsIgnoreCase(way->text, "legacy") && found &&
                      std::find(kOfOld.begin(), kOfOld.end(), found->text) != kOfOld.end();
  const bool global = !found || legacy || found->text == "aws-global";
  Result<Endpoint> endpoint =
      ResolveEndpoint({"sts", found ? found->text : std::string(kFallbackRegion), "", profile},
                      environment, profiles);
  if (!endpoint || !global) return endpoint;
  // Only where it would have been the region's plain endpoint.
  const std::string plain =
      HostOf("sts", found ? found->text : std::string(kFallbackRegion), HostForm{});
  if (endpoint->address.host != plain || !endpoint->tls) return endpoint;
  endpoint->address.host = endpoint->host_header = "sts.amazonaws.com";
  endpoint->region = kFallbackRegion;
  return endpoint;
}

}  // namespace leasehold::aws
