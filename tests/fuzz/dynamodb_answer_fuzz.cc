// What the dynamodb adapter makes of a service's answers, which may be anybody's: a status in the
// first line, then the body; taken for the answer of every call we make. Asserted: each gets an
// outcome; applied is only what shows the very attempt, a conflict only what shows what is there
// instead, absent only a 200 without an item; refused, which stops a caller from trying, never what
// a server said of itself (5xx) or nobody knows; a record comes back as it went; an error is a
// printable sentence.
#include <string>
#include <vector>

#include "aws/api_error.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "fuzz/fuzz_target.h"
#include "store/dynamodb_answer.h"
#include "store/dynamodb_record.h"

namespace leasehold::fuzz {
namespace {

using proto::Json;
using store::CasResult;
using store::DynamoDbAnswer;
using store::ReadResult;

const store::DynamoDbItem& Item() {
  static const store::DynamoDbItem item = {"a:lease:orders", "orders"};
  return item;
}

const store::DynamoDbPlace& Place() {
  static const store::DynamoDbPlace place = {"leasehold", "eu-central-1", "https://h"};
  return place;
}

lease::Record Attempt() {
  lease::Record record;
  record.lease = "orders";
  record.node_id = "n1";
  record.process_id = "p1";
  record.token = 3;
  record.beat = 8;
  record.ttl_ms = 10000;
  return record;
}

void CheckSentence(const std::string& error) {
  CHECK(!error.empty(), "a failure without a sentence");
  CHECK(error.size() < 4096, "a sentence without bound");
  for (const char c : error) CHECK(c >= ' ' && c < 0x7f, "a sentence shows raw bytes");
}

aws::Response ResponseOf(std::string_view input) {
  aws::Response response;
  const size_t end = std::min(input.find('\n'), input.size());
  const auto status = base::ParseUint64(input.substr(0, end));
  response.status = status && *status >= 200 && *status < 600 ? static_cast<int>(*status) : 200;
  response.body = std::string(input.substr(std::min(end + 1, input.size())));
  if (response.status >= 400) {
    response.error = aws::ParseApiError(response.status, {}, response.body);
  }
  return response;
}

// Does it show an attempt of p1/3/8?
bool ShowsIt(const std::optional<Json>& attributes) {
  if (!attributes) return false;
  const auto text = [&](std::string_view name) {
    const std::optional<Json> typed = attributes->Find(name);
    return typed ? typed->String("S").value_or("") : "";
  };
  return text("process_id") == "p1" && text("token") == "3" && text("beat") == "8";
}

// What the body holds under a name, if it is an object.
std::optional<Json> Member(const aws::Response& response, std::string_view name) {
  const auto body = Json::Parse(response.body);
  return body ? body->Find(name) : std::nullopt;
}

void CheckRecord(const lease::Record& record, const lease::Version& version) {
  CHECK(version == lease::MakeVersion(record), "another version");
  const auto known = store::EncodeItem(record);
  const auto unknown = store::EncodeUnknown(record);
  CHECK(known.ok() && unknown.ok(), "a record that was read cannot be written");
  std::string text;
  base::JsonWriter json(text);
  json.BeginObject().Key("pk").BeginObject().Member("S", Item().key).EndObject();
  for (const auto& [name, value] : *known) json.Key(name).Raw(value);
  for (const auto& [name, value] : *unknown) json.Key(name).Raw(value);
  json.EndObject();
  const auto parsed = Json::Parse(text);
  CHECK(parsed.ok(), "an item as it is written is no JSON");
  const auto again = store::DecodeItem(Item().key, Item().lease, *parsed);
  CHECK(again.ok() && *again == record, "a record does not come back as it went");
  if (lease::ValidateRecord(record).ok()) {
    CHECK(record.format == lease::kRecordFormat, "a record of another format is acted on");
    CHECK(record.lease == Item().lease, "a record of another lease is acted on");
  }
}

// Refused is what is known to repeat. `by_item`: by what stands in the item, not by the service.
void CheckRefusal(const aws::Response& response, bool by_item, const std::string& error) {
  CheckSentence(error);
  if (by_item) return;
  CHECK(response.status >= 400 && response.status < 500, "a fault of the service's own is refused");
  CHECK(response.error && !response.error->code.empty(), "what nobody knows is refused");
}

void CheckRead(const aws::Response& response, const DynamoDbAnswer& answer) {
  const ReadResult result = store::JudgeRead(Place(), Item(), answer);
  const bool shown = response.status == 200 && Member(response, "Item").has_value();
  switch (result.outcome) {
    case ReadResult::Outcome::kAbsent:
      CHECK(response.status == 200 && !shown, "absent, and yet there");
      return;
    case ReadResult::Outcome::kRecord:
      CHECK(shown, "a record out of nothing");
      return CheckRecord(result.record, result.version);
    case ReadResult::Outcome::kRefused: return CheckRefusal(response, shown, result.error);
    case ReadResult::Outcome::kAmbiguous: CHECK(!shown, "an item is ambiguous"); break;
  }
  CheckSentence(result.error);
}

void CheckCas(const aws::Response& response, const DynamoDbAnswer& answer) {
  const lease::Record attempt = Attempt();
  const auto result = store::JudgeCas(Place(), Item(), attempt, answer);
  const bool yes = response.status == 200 && ShowsIt(Member(response, "Attributes"));
  if (!result) {
    CHECK(answer.condition_failed() && !answer.shown, "to be looked at, and why?");
    return;
  }
  switch (result->outcome) {
    case CasResult::Outcome::kApplied:
      CHECK(yes || (answer.condition_failed() && ShowsIt(Member(response, "Item"))),
            "applied, without a sign of it");
      CHECK(result->version == lease::MakeVersion(attempt), "whose version?");
      return;
    case CasResult::Outcome::kConflict:
      CHECK(answer.condition_failed() && result->record && !result->absent,
            "a conflict with what?");
      return CheckRecord(*result->record, result->version);
    case CasResult::Outcome::kRefused:
      CheckRefusal(response, answer.shown.has_value(), result->error);
      break;
    case CasResult::Outcome::kAmbiguous: CheckSentence(result->error); break;
  }
  CHECK(!yes, "a yes was not taken for one");
}

void CheckLook(const aws::Response& response, const DynamoDbAnswer& answer, bool expected_absent) {
  const CasResult result = store::JudgeLook(Place(), Item(), expected_absent, Attempt(), answer);
  const std::optional<Json> item =
      response.status == 200 ? Member(response, "Item") : std::optional<Json>();
  switch (result.outcome) {
    case CasResult::Outcome::kApplied:
      CHECK(ShowsIt(item), "applied, without a sign of it");
      return;
    case CasResult::Outcome::kConflict:
      CHECK(response.status == 200, "a conflict that nobody told");
      CHECK(result.absent == !item.has_value(), "absent, and yet there");
      CHECK(!(result.absent && expected_absent), "what was expected is no conflict");
      if (result.record) CheckRecord(*result.record, result.version);
      return;
    case CasResult::Outcome::kRefused:
      CHECK(item.has_value(), "a write that may have happened is refused");
      break;
    case CasResult::Outcome::kAmbiguous: break;
  }
  CheckSentence(result.error);
}

void CheckKeys(std::string_view input) {
  const std::string_view a = input.substr(0, input.size() / 2);
  const std::string_view b = input.substr(input.size() / 2);
  CHECK(store::DynamoDbKeyOf(a, "x") != store::DynamoDbKeyOf(b, "x") || a == b,
        "two prefixes share a key");
  CHECK(store::DynamoDbKeyOf("a", b) != store::DynamoDbKeyOf("a:lease:" + std::string(a), b),
        "two teams share a key");
  CHECK(store::DynamoDbKeyOf(a, b) != store::DynamoDbCheckKey(a), "a lease has the check's key");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  namespace store = leasehold::store;
  const std::string_view input = View(data, size);
  CheckKeys(input);
  const leasehold::aws::Response response = ResponseOf(input);
  CheckRead(response, store::TakeApart(Place(), "GetItem", response));
  CheckCas(response, store::TakeApart(Place(), "UpdateItem", response));
  CheckLook(response, store::TakeApart(Place(), "GetItem", response), false);
  CheckLook(response, store::TakeApart(Place(), "GetItem", response), true);
  return 0;
}
