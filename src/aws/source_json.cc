#include "aws/source_json.h"

#include <utility>

#include "base/text.h"
#include "proto/json.h"

namespace leasehold::aws {
namespace {

using base::Error;
using base::ErrorCode;
using proto::Json;

constexpr size_t kWordBytesMax = 64;  // the longest name of an error of AWS's has some 50

bool IsKeyText(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte >= 0x7f) return false;
  }
  return true;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

int TwoDigits(std::string_view text) { return (text[0] - '0') * 10 + (text[1] - '0'); }

// "Z" or "+hh:mm": how far the clock of the text is ahead.
std::optional<int64_t> ParseZone(std::string_view zone) {
  if (zone == "Z" || zone == "z") return 0;
  if (zone.size() < 5 || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  std::string digits(zone.substr(1));
  if (digits.size() == 5 && digits[2] == ':') digits.erase(2, 1);
  if (digits.size() != 4 || !IsDigits(digits)) return std::nullopt;
  const int hours = TwoDigits(digits);
  const int minutes = TwoDigits(std::string_view(digits).substr(2));
  if (hours > 23 || minutes > 59) return std::nullopt;
  const int64_t seconds = int64_t{hours} * 3600 + int64_t{minutes} * 60;
  return zone[0] == '-' ? -seconds : seconds;
}

Error Bad(const std::string& who, const std::string& what) {
  return {ErrorCode::kInvalid, who + " gave " + what};
}

}  // namespace

std::optional<int64_t> ParseInstantMs(std::string_view text) {
  constexpr size_t kSecondsEnd = 19;  // of "2026-11-30T14:41:55"
  if (text.size() <= kSecondsEnd) return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't') || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  std::string basic;  // "20261130T144155Z"
  for (const size_t at : {size_t{0}, size_t{5}, size_t{8}, size_t{11}, size_t{14}, size_t{17}}) {
    if (at == 11) basic += 'T';
    basic += text.substr(at, at == 0 ? 4 : 2);
  }
  const std::optional<int64_t> seconds = proto::sigv4::ParseAmzDate(basic + "Z");
  if (!seconds) return std::nullopt;
  std::string_view rest = text.substr(kSecondsEnd);
  int64_t millis = 0;
  if (rest.front() == '.') {
    const size_t end = rest.find_first_not_of("0123456789", 1);
    if (end == 1 || end == std::string_view::npos) return std::nullopt;
    for (size_t i = 1; i <= 3; ++i) millis = millis * 10 + (i < end ? rest[i] - '0' : 0);
    rest.remove_prefix(end);
  }
  const std::optional<int64_t> zone = ParseZone(rest);
  if (!zone) return std::nullopt;
  return (*seconds - *zone) * 1000 + millis;
}

std::string ErrorWord(std::string_view text) {
  if (text.empty() || text.size() > kWordBytesMax) return "";
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-') return "";
  }
  return " (" + std::string(text) + ")";
}

base::Status CheckKey(const proto::sigv4::Key& key, const std::string& who) {
  const auto bad = [&](const std::string& what) {
    return Bad(who, what + " with a blank, a line break or another byte that none has");
  };
  if (!IsKeyText(key.access_key_id)) return bad("an access key id");
  if (!IsKeyText(key.secret_access_key)) return bad("a secret access key");
  if (!IsKeyText(key.session_token)) return bad("a session token");
  return {};
}

base::Result<Credentials> ParseCredentialsJson(std::string_view text, const JsonForm& form,
                                               const std::string& who) {
  const base::Result<Json> json = Json::Parse(text);
  // The parser's own sentence has the text around the place, which may be a secret's.
  if (!json || !json->is_object()) return Bad(who, "something that is no JSON object");
  if (const auto code = json->String("Code"); code && *code != "Success") {
    return Error{ErrorCode::kRefused, who + " says that it has no credentials" + ErrorWord(*code)};
  }
  const auto id = json->String("AccessKeyId");
  const auto secret = json->String("SecretAccessKey");
  const auto token = json->String(form.token_name);
  const auto expiration = json->String("Expiration");
  if (!id || id->empty()) return Bad(who, "JSON without AccessKeyId");
  if (!secret || secret->empty()) return Bad(who, "JSON without SecretAccessKey");
  if (form.token_needed && (!token || token->empty())) {
    return Bad(who, "JSON without " + std::string(form.token_name));
  }
  Credentials credentials;
  credentials.key = {*id, *secret, token.value_or("")};
  if (base::Status status = CheckKey(credentials.key, who); !status) return status.error();
  if (expiration) {
    credentials.expires_unix_ms = ParseInstantMs(*expiration);
    if (!credentials.expires_unix_ms) {
      return Bad(who, "an Expiration that is no time, like \"2026-11-30T14:41:55Z\"");
    }
  } else if (form.expiry_needed || json->Find("Expiration")) {
    return Bad(who, "JSON without an Expiration as text");
  }
  credentials.source = who;
  return credentials;
}

}  // namespace leasehold::aws
