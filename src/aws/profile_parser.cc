// The text of the shared files. What AWS's SDKs disagree about is read as most of them do; a line
// is a continuation if it is indented further than the setting before it, so that a file whose
// every line is indented reads as people mean it.
#include <string>
#include <utility>

#include "aws/profile.h"
#include "base/text.h"

namespace leasehold::aws {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsComment(char c) { return c == '#' || c == ';'; }

// Without a comment, which begins after a blank only: "https://host/#a" has none.
std::string_view WithoutComment(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (IsComment(text[i]) && IsBlank(text[i - 1])) return text.substr(0, i);
  }
  return text;
}

size_t Indent(std::string_view line) {
  size_t indent = 0;
  while (indent < line.size() && IsBlank(line[indent])) ++indent;
  return indent;
}

// "name" and 'name' may be quoted, as the names of profiles with a special character often are.
std::string_view Unquoted(std::string_view name) {
  const bool quoted = name.size() >= 2 && (name.front() == '"' || name.front() == '\'') &&
                      name.back() == name.front();
  return quoted ? name.substr(1, name.size() - 2) : name;
}

class Parser {
 public:
  Parser(const std::string& path, bool credentials_file)
      : path_(path), credentials_file_(credentials_file) {}

  Status Line(std::string_view line) {
    ++number_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view text = base::Trim(line);
    if (text.empty() || IsComment(text.front())) return {};
    const size_t indent = Indent(line);
    if (text.front() == '[' && !(InSetting() && indent > setting_indent_)) return Section(text);
    if (!seen_section_) return Bad("a setting stands before the first [profile]");
    if (section_ == nullptr) return {};  // of a section that means nothing here
    if (InSetting() && indent > setting_indent_) return Continuation(text);
    setting_indent_ = indent;
    return Setting(text);
  }

  // What this file says goes over what is there, setting by setting.
  void MergeInto(Profiles& into) {
    Merge(read_.profiles, into.profiles);
    Merge(read_.services, into.services);
    Merge(read_.sso_sessions, into.sso_sessions);
  }

 private:
  using Sections = std::map<std::string, Profile>;

  bool InSetting() const { return section_ != nullptr && !setting_.empty(); }

  Error Bad(const std::string& what) const {
    return {ErrorCode::kInvalid,
            base::Printable(path_) + ", line " + std::to_string(number_) + ": " + what};
  }

  Status Section(std::string_view text) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return Bad("the ']' of the section is missing");
    const std::string_view after = base::Trim(text.substr(close + 1));
    if (!after.empty() && !IsComment(after.front())) {
      return Bad("after the ']' of a section only a comment may follow");
    }
    seen_section_ = true;
    setting_.clear();
    section_ = Enter(base::Trim(text.substr(1, close - 1)));
    return {};
  }

  // Null: a section of which this file's kind knows nothing. AWS's own tools skip those too.
  Profile* Enter(std::string_view title) {
    if (credentials_file_) return title.empty() ? nullptr : &read_.profiles[std::string(title)];
    if (title == "default") return default_has_prefix_ ? nullptr : &read_.profiles["default"];
    const size_t blank = title.find_first_of(" \t");
    if (blank == std::string_view::npos) return nullptr;
    const std::string_view kind = title.substr(0, blank);
    const std::string name(Unquoted(base::Trim(title.substr(blank))));
    if (name.empty()) return nullptr;
    if (kind == "services") return &read_.services[name];
    if (kind == "sso-session") return &read_.sso_sessions[name];
    if (kind != "profile") return nullptr;
    if (name == "default" && !std::exchange(default_has_prefix_, true)) {
      read_.profiles.erase(name);  // [profile default] goes over [default], wherever they stand
    }
    return &read_.profiles[name];
  }

  Status Setting(std::string_view text) {
    const size_t equals = text.find('=');
    const std::string name = base::ToLower(base::Trim(text.substr(0, equals)));
    if (equals == std::string_view::npos || name.empty()) {
      return Bad("this is neither a section, a comment nor \"name = value\"");
    }
    setting_ = name;
    // A blank before the value's first byte makes even that the start of a comment.
    section_->settings[name] = base::Trim(WithoutComment(text.substr(equals)).substr(1));
    return {};
  }

  Status Continuation(std::string_view text) {
    std::string& value = section_->settings[setting_];
    if (!value.empty()) {
      value.append("\n").append(text);
      return {};
    }
    const size_t equals = text.find('=');
    const std::string name = base::ToLower(base::Trim(text.substr(0, equals)));
    if (equals == std::string_view::npos || name.empty()) {
      return Bad("below a setting without a value only indented \"name = value\" may follow");
    }
    section_->nested[setting_][name] = base::Trim(WithoutComment(text.substr(equals)).substr(1));
    return {};
  }

  static void Merge(const Sections& from, Sections& into) {
    for (const auto& [name, profile] : from) {
      Profile& target = into[name];
      for (const auto& [setting, value] : profile.settings) target.settings[setting] = value;
      for (const auto& [setting, below] : profile.nested) {
        for (const auto& [inner, value] : below) target.nested[setting][inner] = value;
      }
    }
  }

  const std::string& path_;
  const bool credentials_file_;
  Profiles read_;
  size_t number_ = 0;
  bool seen_section_ = false;
  bool default_has_prefix_ = false;
  Profile* section_ = nullptr;
  std::string setting_;  // the one before, of this section; empty: none yet
  size_t setting_indent_ = 0;
};

}  // namespace

base::Status ParseProfiles(std::string_view text, const std::string& path, bool credentials_file,
                           Profiles& into) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  Parser parser(path, credentials_file);
  for (const std::string_view line : base::Split(text, '\n')) {
    if (Status status = parser.Line(line); !status) return status;
  }
  parser.MergeInto(into);
  return {};
}

}  // namespace leasehold::aws
