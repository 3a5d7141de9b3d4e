// URLs of configuration, and application checks, which hold them. Asserted: what is accepted
// leads to the same place, with the same credentials, when it is written again from its parts; no
// message and no name shows a password; errors are printable and bounded.
#include <string>

#include "fuzz/fuzz_target.h"
#include "health/check_spec.h"
#include "proto/url.h"

namespace leasehold::fuzz {
namespace {

using proto::Url;

void CheckSentence(const base::Error& error) {
  CHECK(!error.message.empty(), "an error without a sentence");
  CHECK(error.message.size() < 1024, "an error repeats its whole input");
  for (const char c : error.message) CHECK(c >= ' ' && c < 0x7f, "an error shows raw bytes");
}

// What stands between the scheme and the last '@' may be a secret, whatever else is wrong.
std::string_view MaybeSecret(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos) return {};
  const size_t scheme = text.find("://");
  const size_t begin = scheme == std::string_view::npos || scheme > at ? 0 : scheme + 3;
  return text.substr(begin, at - begin);
}

// Is this text so much its own that finding it in a message means that the message shows it?
bool IsTelling(std::string_view secret, std::string_view text) {
  return secret.size() >= 8 && text.find(secret) == text.rfind(secret) &&
         // Sentences have blanks, what is shown has escapes, and both may name a scheme.
         secret.find_first_of(" \\") == std::string_view::npos &&
         secret.find(":/") == std::string_view::npos;
}

std::string Encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  }
  return out;
}

std::string Written(const Url& url, bool with_user) {
  std::string text = url.scheme + "://";
  if (with_user && (!url.user.empty() || url.has_password)) {
    text += Encoded(url.user) + (url.has_password ? ":" + Encoded(url.password) : "") + "@";
  }
  return text + url.address().ToString() + url.path;
}

void CheckParts(const Url& url) {
  CHECK(url.scheme == "redis" || url.scheme == "rediss" || url.scheme == "http" ||
            url.scheme == "https",
        "what scheme");
  CHECK(!url.host.empty() && url.port != 0, "a URL that leads nowhere");
  CHECK(url.path.empty() || url.path.starts_with('/'), "a path that is none");
  CHECK(url.has_password || url.password.empty(), "a password that was not given");
  CHECK(url.user.find('\0') == std::string::npos && url.password.find('\0') == std::string::npos,
        "a credential that some servers would cut");
}

void CheckSame(const Url& a, const Url& b) {
  CHECK(a.scheme == b.scheme, "another scheme");
  CHECK(a.user == b.user && a.has_password == b.has_password && a.password == b.password,
        "other credentials");
  CHECK(a.host == b.host && a.port == b.port, "another host");
  CHECK(a.path == b.path, "another path");
}

void CheckUrl(std::string_view text) {
  const base::Result<Url> url = proto::ParseUrl(text);
  if (!url) {
    CheckSentence(url.error());
    const std::string_view secret = MaybeSecret(text);
    if (IsTelling(secret, text)) {
      CHECK(url.error().message.find(secret) == std::string::npos, "an error shows a password");
    }
    return;
  }
  CheckParts(*url);
  const std::string shown = url->ToString();
  if (IsTelling(url->password, text) && text.find(url->password) != std::string_view::npos) {
    CHECK(shown.find(url->password) == std::string::npos, "a password is shown");
  }
  std::string written = Written(*url, true);
  // %XX takes three bytes for one; beyond its bound a URL is refused.
  if (written.size() > 2048) written = Written(*url, false);
  const base::Result<Url> again = proto::ParseUrl(written);
  CHECK(again.ok(), "a URL as it is written is none");
  Url expected = *url;
  if (written == Written(*url, false)) {
    expected.user = expected.password = "";
    expected.has_password = false;
  }
  CheckSame(*again, expected);
}

void CheckAppCheck(std::string_view text) {
  using Kind = health::CheckSpec::Kind;
  const base::Result<health::CheckSpec> spec = health::ParseCheckSpec(text);
  if (!spec) return CheckSentence(spec.error());
  switch (spec->kind) {
    case Kind::kNone: CHECK(text.empty(), "no check where there was text"); return;
    case Kind::kExec: CHECK(!spec->argv.empty() && !spec->argv[0].empty(), "no command"); return;
    case Kind::kHttp: CHECK(spec->target.starts_with('/'), "no target"); break;
    case Kind::kTcp: break;
  }
  const std::string prefix = spec->kind == Kind::kHttp ? "http://" : "tcp://";
  const base::Result<health::CheckSpec> again =
      health::ParseCheckSpec(prefix + spec->address.ToString() + spec->target);
  CHECK(again.ok(), "a check as it is written is none");
  CHECK(
      again->kind == spec->kind && again->address == spec->address && again->target == spec->target,
      "a check asks elsewhere when it is written and read again");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  CheckUrl(input);
  CheckAppCheck(input);
  return 0;
}
