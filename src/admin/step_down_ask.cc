#include "admin/step_down_ask.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace leasehold::admin {
namespace {

base::Error Wrong(std::string_view key, const std::optional<proto::Json>& found,
                  std::string_view right) {
  const std::string what =
      found ? "is " + std::string(proto::JsonTypeName(found->type())) : "is missing";
  return {base::ErrorCode::kInvalid,
          "\"" + std::string(key) + "\" " + what + "; give " + std::string(right)};
}

}  // namespace

base::Status ReadOptionalBool(const proto::Json& body, std::string_view key, bool& value) {
  const std::optional<proto::Json> found = body.Find(key);
  if (!found) return {};
  const std::optional<bool> given = found->AsBool();
  if (!given) return Wrong(key, found, "true or false");
  value = *given;
  return {};
}

base::Status ReadStepDownAsk(const proto::Json& body,
                             std::initializer_list<std::string_view> others, StepDownAsk& ask) {
  static constexpr std::array<std::string_view, 3> kOurs = {"expected_node_id", "expected_token",
                                                            "take_back"};
  if (!body.is_object()) {
    return base::Error{base::ErrorCode::kInvalid,
                       "the body must be a JSON object with expected_node_id and expected_token"};
  }
  for (const std::string& key : body.Keys()) {
    const auto is_key = [&](std::string_view known) { return known == key; };
    if (std::any_of(kOurs.begin(), kOurs.end(), is_key)) continue;
    if (std::any_of(others.begin(), others.end(), is_key)) continue;
    return base::Error{base::ErrorCode::kInvalid,
                       "\"" + base::Printable(key) +
                           "\" is not a member of a step-down; known are expected_node_id, "
                           "expected_token and take_back"};
  }
  const std::optional<std::string> node_id = body.String("expected_node_id");
  if (!node_id || node_id->empty()) {
    return Wrong("expected_node_id", body.Find("expected_node_id"),
                 "the holder's node id, as describe shows it");
  }
  const std::optional<uint64_t> token = body.Token("expected_token");
  if (!token || *token == 0) {
    return Wrong("expected_token", body.Find("expected_token"),
                 "the holder's fencing token as a decimal string, as describe shows it");
  }
  ask.expected = {*node_id, *token};
  return ReadOptionalBool(body, "take_back", ask.take_back);
}

}  // namespace leasehold::admin
