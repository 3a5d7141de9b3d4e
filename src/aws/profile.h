// Profiles: the shared config and credentials files of AWS ("~/.aws/config", "~/.aws/credentials"),
// read and merged. Values only. Source: "AWS SDKs and Tools Reference Guide", shared config and
// credentials files. Unknown settings are kept and ignored; a line that is none is an error that
// names file and line, never its content (it may be a secret).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "aws/environment.h"
#include "base/result.h"

namespace leasehold::aws {

struct Profile {
  std::map<std::string, std::string> settings;  // "region", "aws_access_key_id", ... lower case
  // Indented settings under one: "services"-style nesting, "s3 =\n  addressing_style = path".
  std::map<std::string, std::map<std::string, std::string>> nested;
  std::optional<std::string> Get(std::string_view setting) const;  // empty counts as absent
};

struct Profiles {
  std::map<std::string, Profile> profiles;  // credentials file over config file, setting by setting
  std::map<std::string, Profile> services;  // [services name]: nested by service
  std::map<std::string, Profile> sso_sessions;
  std::string config_path;  // "" where there is no HOME to look in
  std::string credentials_path;

  const Profile* Find(std::string_view name) const;
};

// Which files: AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE, else under HOME. One that is not
// there is empty. Reads small local files at once (at most 1 MiB each): for the start, and for
// worker threads (loop::Loop::Work) after it.
base::Result<Profiles> ReadProfiles(const Environment& environment);
// The pure part: adds one file's text. `credentials_file`: sections are bare profile names.
base::Status ParseProfiles(std::string_view text, const std::string& path, bool credentials_file,
                           Profiles& into);

// options.profile, else AWS_PROFILE, else AWS_DEFAULT_PROFILE, else "default".
std::string ProfileName(const std::string& option, const Environment& environment);

}  // namespace leasehold::aws
