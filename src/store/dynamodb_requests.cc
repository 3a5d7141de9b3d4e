#include "store/dynamodb_requests.h"

#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "store/dynamodb_record.h"

namespace leasehold::store {
namespace {

using base::JsonWriter;

// The version of DynamoDB's API, in every X-Amz-Target. The one there is.
constexpr std::string_view kApi = "DynamoDB_20120810.";
// An answer has one item, which is 400 KB at most; JSON escapes may make it longer. An error's is
// short.
constexpr size_t kAnswerBytesMax = size_t{1} << 20;

void WriteKey(JsonWriter& json, std::string_view table, std::string_view key) {
  json.Member("TableName", table);
  json.Key("Key").BeginObject().Key(kDynamoDbKey).BeginObject();
  json.Member("S", key).EndObject().EndObject();
}

// The names, values and clauses of one update.
class Expressions {
 public:
  // Its value is in DynamoDB's JSON.
  void Set(const std::string& name, const std::string& value) {
    sets_ += (sets_.empty() ? "SET #" : ", #") + name + " = :" + name;
    names_.emplace_back(name, name);
    values_.emplace_back(name, value);
  }
  // An attribute whose name is not ours to put into an expression.
  void SetUnknown(const std::string& name, const std::string& value) {
    const std::string placeholder = "unknown_" + std::to_string(names_.size());
    sets_ += ", #" + placeholder + " = :" + placeholder;
    names_.emplace_back(placeholder, name);
    values_.emplace_back(placeholder, value);
  }
  void Remove(const std::string& name) {
    removes_ += (removes_.empty() ? " REMOVE #" : ", #") + name;
    names_.emplace_back(name, name);
  }
  void Name(const std::string& name) { names_.emplace_back(name, name); }
  void Value(const std::string& name, std::string_view text) {
    std::string json;
    JsonWriter(json).BeginObject().Member("S", text).EndObject();
    values_.emplace_back(name, std::move(json));
  }

  void Write(JsonWriter& json, std::string_view condition) const {
    json.Member("ConditionExpression", condition);
    if (!sets_.empty()) json.Member("UpdateExpression", sets_ + removes_);
    json.Key("ExpressionAttributeNames").BeginObject();
    for (const auto& [placeholder, name] : names_) json.Member("#" + placeholder, name);
    json.EndObject().Key("ExpressionAttributeValues").BeginObject();
    for (const auto& [placeholder, value] : values_) json.Key(":" + placeholder).Raw(value);
    json.EndObject();
  }

 private:
  std::string sets_;
  std::string removes_;
  std::vector<std::pair<std::string, std::string>> names_;   // placeholder -> attribute
  std::vector<std::pair<std::string, std::string>> values_;  // placeholder -> DynamoDB's JSON
};

// A version is "<process id>/<token>/<beat>" (lease::MakeVersion). One that is not is no record's,
// and its condition never holds.
std::string ExpectVersion(Expressions& expressions, std::string_view version) {
  const size_t last = version.rfind('/');
  const std::string_view rest = version.substr(0, last == std::string_view::npos ? 0 : last);
  const size_t middle = rest.rfind('/');
  const bool whole = middle != std::string_view::npos;
  expressions.Value("was_process_id", whole ? rest.substr(0, middle) : version);
  expressions.Value("was_token", whole ? rest.substr(middle + 1) : "");
  expressions.Value("was_beat", whole ? version.substr(last + 1) : "");
  return "#process_id = :was_process_id AND #token = :was_token AND #beat = :was_beat "
         "AND #lease = :lease AND #format <= :format";
}

}  // namespace

std::string GetItemBody(std::string_view table, std::string_view key) {
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  WriteKey(json, table, key);
  json.Member("ConsistentRead", true).EndObject();
  return body;
}

base::Result<std::string> CompareAndSetBody(std::string_view table, std::string_view key,
                                            const std::optional<lease::Version>& expected,
                                            const lease::Record& record) {
  const base::Result<DynamoDbAttributes> attributes = EncodeItem(record);
  if (!attributes) return attributes.error();
  Expressions expressions;
  for (const auto& [name, value] : *attributes) expressions.Set(name, value);
  std::string condition;
  if (expected) {
    condition = ExpectVersion(expressions, *expected);
    if (record.former.empty()) expressions.Remove("former");
    if (record.peers.empty()) expressions.Remove("peers");
  } else {
    condition = "attribute_not_exists(#pk)";
    expressions.Name(std::string(kDynamoDbKey));
    const base::Result<DynamoDbAttributes> unknown = EncodeUnknown(record);
    if (!unknown) return unknown.error();
    for (const auto& [name, value] : *unknown) expressions.SetUnknown(name, value);
  }
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  WriteKey(json, table, key);
  expressions.Write(json, condition);
  json.Member("ReturnValues", "ALL_NEW");  // moto's UPDATED_NEW leaves out what stays the same
  json.Member("ReturnValuesOnConditionCheckFailure", "ALL_OLD").EndObject();
  return body;
}

std::string ProbeBody(std::string_view table, std::string_view key) {
  Expressions expressions;
  expressions.Name(std::string(kDynamoDbKey));
  expressions.Value("none", "-");  // every key of ours has a ':'
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  WriteKey(json, table, key);
  expressions.Write(json, "#pk = :none");
  json.EndObject();
  return body;
}

std::string CreateTableBody(std::string_view table) {
  std::string body;
  JsonWriter json(body);
  json.BeginObject().Member("TableName", table).Member("BillingMode", "PAY_PER_REQUEST");
  json.Key("AttributeDefinitions").BeginArray().BeginObject();
  json.Member("AttributeName", kDynamoDbKey).Member("AttributeType", "S").EndObject().EndArray();
  json.Key("KeySchema").BeginArray().BeginObject();
  json.Member("AttributeName", kDynamoDbKey).Member("KeyType", "HASH").EndObject().EndArray();
  json.EndObject();
  return body;
}

aws::Request DynamoDbRequest(std::string_view operation, std::string body, bool repeatable,
                             base::Duration timeout) {
  aws::Request request;
  request.headers = {{"Content-Type", "application/x-amz-json-1.0"},
                     {"X-Amz-Target", std::string(kApi) + std::string(operation)}};
  request.body = std::move(body);
  request.timeout = timeout;
  request.body_bytes_max = kAnswerBytesMax;
  request.idempotent = repeatable;
  return request;
}

}  // namespace leasehold::store
