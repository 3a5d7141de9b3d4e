#include "aws/profile.h"

#include <sys/stat.h>

#include <cerrno>

#include "aws/source_files.h"

namespace leasehold::aws {
namespace {

// A file of settings has some KiB; what is longer is something else.
constexpr size_t kFileBytesMax = size_t{1024} * 1024;

struct Place {
  std::string path;     // "": there is none
  bool chosen = false;  // by a variable, not by custom
};

Place FindPlace(const Environment& environment, const std::string& variable,
                const std::string& below_home) {
  const std::optional<std::string> home = environment.Get("HOME");
  if (std::optional<std::string> path = environment.Get(variable)) {
    if (path->starts_with("~/") && home) path = *home + path->substr(1);
    return {*path, true};
  }
  if (!home) return {};
  return {*home + (home->ends_with('/') ? "" : "/") + below_home, false};
}

// The directory above may not be searched: then nobody has put a file there for this user. That is
// the ordinary state in a container that runs as another user than the one whose HOME it has.
bool IsOutOfSight(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) != 0 && errno == EACCES;
}

base::Status ReadOne(const Place& place, bool credentials_file, Profiles& into) {
  if (place.path.empty()) return {};
  const base::Result<std::string> text = ReadSmallFile(place.path, kFileBytesMax);
  if (!text) {
    if (text.error().code == base::ErrorCode::kNotFound) return {};
    if (!place.chosen && IsOutOfSight(place.path)) return {};
    return text.error();
  }
  return ParseProfiles(*text, place.path, credentials_file, into);
}

}  // namespace

std::optional<std::string> Profile::Get(std::string_view setting) const {
  const auto found = settings.find(std::string(setting));
  if (found == settings.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

const Profile* Profiles::Find(std::string_view name) const {
  const auto found = profiles.find(std::string(name));
  return found == profiles.end() ? nullptr : &found->second;
}

base::Result<Profiles> ReadProfiles(const Environment& environment) {
  const Place config = FindPlace(environment, "AWS_CONFIG_FILE", ".aws/config");
  const Place credentials =
      FindPlace(environment, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
  Profiles profiles;
  profiles.config_path = config.path;
  profiles.credentials_path = credentials.path;
  if (base::Status status = ReadOne(config, false, profiles); !status) return status.error();
  if (base::Status status = ReadOne(credentials, true, profiles); !status) return status.error();
  return profiles;
}

std::string ProfileName(const std::string& option, const Environment& environment) {
  if (!option.empty()) return option;
  if (const auto name = environment.Get("AWS_PROFILE")) return *name;
  return environment.Get("AWS_DEFAULT_PROFILE").value_or("default");
}

}  // namespace leasehold::aws
