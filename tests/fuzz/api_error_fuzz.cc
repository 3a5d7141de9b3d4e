// What a service of AWS, or whoever stands before it, says when it did not do what it was asked: a
// status in the first line, X-Amzn-ErrorType in the second, then the body. Asserted of anything: a
// code is a bare word, a message is one printable line without end; a fault of the service's own is
// never the client's; a session token that it repeats is not shown; said in the other form (JSON or
// XML), the same code is the same trouble.
#include <algorithm>
#include <string>

#include "aws/api_error.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "fuzz/fuzz_target.h"
#include "proto/xml.h"

namespace leasehold::fuzz {
namespace {

using aws::ApiError;
using aws::Trouble;

std::string_view Line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

int StatusOf(std::string_view line) {
  const auto number = base::ParseUint64(line);
  return number && *number >= 400 && *number < 600 ? static_cast<int>(*number) : 400;
}

void CheckShape(const ApiError& error) {
  CHECK(error.code.size() <= 128, "a code without bound");
  for (const char c : error.code) {
    CHECK((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
              c == '_' || c == '-',
          "a code that is no word");
  }
  CHECK(error.message.size() <= 1024 + 8, "a message without bound");
  for (const char c : error.message) CHECK(c >= ' ' && c < 0x7f, "a message shows raw bytes");
  const std::string lower = base::ToLower(error.message);
  constexpr std::string_view kToken = "x-amz-security-token";
  const size_t token = lower.find(kToken);
  CHECK(token == std::string::npos || token + kToken.size() == lower.size(), "a token is shown");
}

void CheckTrouble(const ApiError& error) {
  const Trouble by_code = aws::ClassifyTrouble(error.status, error.code);
  CHECK(error.trouble == by_code ||
            (by_code == Trouble::kBadCredentials && error.trouble == Trouble::kClockSkew),
        "another trouble than its code's");
  if (error.status >= 500) {
    CHECK(error.trouble == Trouble::kServer || error.trouble == Trouble::kThrottled,
          "a fault of the service's own is the client's");
  }
}

// What a service means by a code does not depend on the form that it is said in.
void CheckForms(const ApiError& error) {
  if (error.code.empty()) return;
  std::string json;
  base::JsonWriter(json)
      .BeginObject()
      .Member("__type", "com.amazonaws.x#" + error.code)
      .Member("message", error.message)
      .EndObject();
  const std::string xml = "<ErrorResponse><Error><Code>" + error.code + "</Code><Message>" +
                          proto::XmlEscape(error.message) + "</Message></Error></ErrorResponse>";
  for (const std::string& body : {json, xml}) {
    const ApiError again = aws::ParseApiError(error.status, {}, body);
    CHECK(again.code == error.code, "another code");
    CHECK(again.trouble == aws::ClassifyTrouble(error.status, error.code) ||
              again.trouble == Trouble::kClockSkew,
          "another trouble");
  }
  const ApiError by_header =
      aws::ParseApiError(error.status, {{"x-amzn-errortype", error.code + ":http://h/"}}, "");
  CHECK(by_header.code == error.code, "another code");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  std::string_view input = View(data, size);
  const int status = StatusOf(Line(input));
  const std::string type(Line(input));
  const auto error = leasehold::aws::ParseApiError(status, {{"X-Amzn-ErrorType", type}}, input);
  CHECK(error.status == status, "another status");
  CheckShape(error);
  CheckTrouble(error);
  CheckForms(error);
  return 0;
}
