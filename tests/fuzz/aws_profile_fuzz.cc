// The shared config and credentials files of AWS, as people write them. Asserted: an error is a
// sentence that names file and line and shows none of the text, and leaves what was read before as
// it was; what was read has names in lower case and no blanks around; the same file twice, one with
// comments and empty lines, one of a Windows editor, and one written again from what was read, all
// read the same.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "aws/profile.h"
#include "base/text.h"
#include "fuzz/fuzz_target.h"

namespace leasehold::fuzz {
namespace {

using aws::Profile;
using aws::Profiles;
using Sections = std::map<std::string, Profile>;

bool Same(const Sections& a, const Sections& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.settings == y.second.settings &&
           x.second.nested == y.second.nested;
  });
}

bool Same(const Profiles& a, const Profiles& b) {
  return Same(a.profiles, b.profiles) && Same(a.services, b.services) &&
         Same(a.sso_sessions, b.sso_sessions);
}

void CheckError(const base::Error& error, std::string_view text) {
  const std::string& message = error.message;
  CHECK(message.starts_with("/f, line ") && message.size() < 200, "where, or what is right?");
  for (const char c : message) CHECK(c >= ' ' && c < 0x7f, "an error shows raw bytes");
  // Its own words may stand in the text too.
  const auto own = [](std::string_view line) {
    constexpr std::array<std::string_view, 5> kSentences = {
        "a setting stands before the first [profile]", "the ']' of the section is missing",
        "after the ']' of a section only a comment may follow",
        "this is neither a section, a comment nor \"name = value\"",
        "below a setting without a value only indented \"name = value\" may follow"};
    return std::any_of(kSentences.begin(), kSentences.end(), [&](std::string_view sentence) {
      return sentence.find(line) != std::string_view::npos;
    });
  };
  for (const std::string_view line : base::Split(text, '\n')) {
    const std::string_view bare = base::Trim(line);
    CHECK(bare.size() < 12 || own(bare) || message.find(bare) == std::string::npos,
          "an error shows a line, which may be a secret");
  }
}

void CheckNames(const Sections& sections) {
  const auto sound = [](const std::string& name) {
    return !name.empty() && base::ToLower(name) == name && base::Trim(name) == name;
  };
  for (const auto& [title, profile] : sections) {
    CHECK(!title.empty(), "a section without a name");
    for (const auto& [name, value] : profile.settings) {
      CHECK(sound(name) && base::Trim(value) == value, "a setting with blanks around");
    }
    for (const auto& [name, below] : profile.nested) {
      CHECK(profile.settings.contains(name), "settings below none");
      for (const auto& [inner, value] : below) {
        CHECK(sound(inner) && base::Trim(value) == value, "a nested setting with blanks around");
      }
    }
  }
}

// What would be cut, joined or dropped at its next reading is not written.
bool CanBeWritten(const Sections& sections) {
  for (const auto& [title, profile] : sections) {
    for (const auto& [name, value] : profile.settings) {
      if (value.find('\n') != std::string::npos) return false;
    }
  }
  return true;
}

void Write(std::string_view kind, const Sections& sections, std::string& text) {
  for (const auto& [title, profile] : sections) {
    text.append("[").append(kind).append(" \"").append(title).append("\"]\n");
    for (const auto& [name, below] : profile.nested) {
      text.append(name).append("=\n");
      for (const auto& [inner, value] : below) {
        text.append("  ").append(inner).append("=").append(value).append("\n");
      }
    }
    for (const auto& [name, value] : profile.settings) {
      text.append(name).append("=").append(value).append("\n");
    }
  }
}

bool Parse(std::string_view text, bool credentials, Profiles& into) {
  return aws::ParseProfiles(text, "/f", credentials, into).ok();
}

void CheckAgain(std::string_view text, bool credentials, const Profiles& read) {
  Profiles again = read;
  CHECK(Parse(text, credentials, again) && Same(again, read), "read twice, it is another");
  if (text.find('\r') != std::string_view::npos) return;
  std::string other;
  for (const std::string_view line : base::Split(text, '\n')) {
    other.append(line).append("\r\n").append("  # a comment\n\n");
  }
  Profiles spaced;
  CHECK(Parse(other, credentials, spaced) && Same(spaced, read), "comments or line ends count");
  if (credentials || !CanBeWritten(read.profiles) || !CanBeWritten(read.services) ||
      !CanBeWritten(read.sso_sessions)) {
    return;
  }
  std::string written;
  Write("profile", read.profiles, written);
  Write("services", read.services, written);
  Write("sso-session", read.sso_sessions, written);
  Profiles back;
  CHECK(Parse(written, false, back) && Same(back, read), "written again, it is another");
}

void CheckFile(std::string_view text, bool credentials) {
  Profiles before;
  CHECK(Parse("[profile a]\nregion = r\n", false, before), "a plain file is none");
  Profiles with = before;
  const base::Status status = aws::ParseProfiles(text, "/f", credentials, with);
  if (!status) {
    CheckError(status.error(), text);
    CHECK(Same(with, before), "half of a file that is wrong was taken");
    return;
  }
  CHECK(with.Find("a") != nullptr && with.Find("a")->settings.contains("region"), "it was lost");
  Profiles read;
  CHECK(Parse(text, credentials, read), "wrong at its second reading");
  CheckNames(read.profiles);
  CheckNames(read.services);
  CheckNames(read.sso_sessions);
  CheckAgain(text, credentials, read);
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  CheckFile(View(data, size), false);
  CheckFile(View(data, size), true);
  return 0;
}
