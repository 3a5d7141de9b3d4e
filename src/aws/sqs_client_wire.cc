#include "aws/sqs_client_wire.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/base64.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "crypto/digest.h"
#include "proto/json.h"

namespace leasehold::aws {
namespace {

namespace sqs = proto::sqs;
using base::Error;
using base::ErrorCode;
using proto::Json;

void WriteAttributes(base::JsonWriter& json, const std::vector<SqsAttribute>& attributes) {
  if (attributes.empty()) return;
  json.Key("MessageAttributes").BeginObject();
  for (const SqsAttribute& attribute : attributes) {
    json.Key(attribute.name).BeginObject().Member("DataType", DataTypeOf(attribute));
    if (attribute.binary) {
      json.Member("BinaryValue", base::Base64Encode(attribute.value));
    } else {
      json.Member("StringValue", attribute.value);
    }
    json.EndObject();
  }
  json.EndObject();
}

void AppendCounted(std::string& out, std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>((length >> shift) & 0xffU);
  out += text;
}

// Of `ids`, each has to be in exactly one of the two lists, and nothing else in either.
base::Result<std::vector<EntryResult>> MatchResults(const std::vector<std::string_view>& ids,
                                                    const sqs::BatchResult& answer) {
  std::vector<EntryResult> results;
  for (const std::string_view id : ids) {
    EntryResult& result = results.emplace_back();
    result.id = id;
    size_t found = 0;
    for (const sqs::BatchSuccess& success : answer.successful) {
      if (success.id != id) continue;
      result.ok = true;
      ++found;
    }
    for (const sqs::EntryFailure& failure : answer.failed) {
      if (failure.id != id) continue;
      result.failure = failure;
      result.again_can_help = !failure.sender_fault;
      ++found;
    }
    if (found != 1) {
      return Error{ErrorCode::kInvalid, "entry " + std::string(id) + " has " +
                                            std::to_string(found) +
                                            " results, where one would be right"};
    }
  }
  if (answer.successful.size() + answer.failed.size() != ids.size()) {
    return Error{ErrorCode::kInvalid, "results of entries that were not sent"};
  }
  return results;
}

// What arrived is not what was sent: SQS has it, garbled, and it must be said.
void CheckDigests(const SqsMessage& message, const sqs::BatchSuccess& success, SendResult& result) {
  const std::string body = crypto::Md5Hex(message.body);  // "": none can be made here (FIPS)
  const bool body_differs =
      !body.empty() && !success.md5_of_body.empty() && success.md5_of_body != body;
  const std::string attributes =
      message.attributes.empty() ? "" : AttributesMd5(message.attributes);
  const bool attributes_differ = !attributes.empty() && !success.md5_of_attributes.empty() &&
                                 success.md5_of_attributes != attributes;
  if (!body_differs && !attributes_differ) return;
  result.ok = false;
  result.again_can_help = true;
  result.failure = {message.id, "Md5Mismatch",
                    std::string("SQS stored ") + (body_differs ? "a body" : "attributes") +
                        " other than was sent: its MD5 is " +
                        (body_differs ? success.md5_of_body : success.md5_of_attributes) +
                        ", ours " + (body_differs ? body : attributes),
                    false};
}

base::Result<std::vector<SqsAttribute>> ReadMessageAttributes(const Json& message) {
  std::vector<SqsAttribute> attributes;
  const std::optional<Json> object = message.Find("MessageAttributes");
  if (!object) return attributes;
  for (const std::string& name : object->Keys()) {
    const Json value = *object->Find(name);
    SqsAttribute attribute;
    attribute.name = name;
    attribute.binary = value.String("DataType").value_or("").starts_with("Binary");
    if (!attribute.binary) {
      attribute.value = value.String("StringValue").value_or("");
    } else {
      std::optional<std::string> bytes =
          base::Base64Decode(value.String("BinaryValue").value_or(""));
      if (!bytes) {
        return Error{ErrorCode::kInvalid,
                     "attribute " + base::Printable(name) + ": BinaryValue is not base64"};
      }
      attribute.value = *std::move(bytes);
    }
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

base::Result<Json> ParseObject(std::string_view body) {
  proto::JsonLimits limits;
  limits.bytes_max = sqs::kAnswerBytesMax;
  auto json = Json::Parse(body, limits);
  if (json && !json->is_object()) return Error{ErrorCode::kInvalid, "no JSON object"};
  return json;
}

}  // namespace

std::string WriteSendBatch(const std::string& queue_url, const std::vector<SqsMessage>& messages) {
  std::string body;
  base::JsonWriter json(body);
  json.BeginObject().Member("QueueUrl", queue_url).Key("Entries").BeginArray();
  for (const SqsMessage& message : messages) {
    json.BeginObject().Member("Id", message.id).Member("MessageBody", message.body);
    if (!message.group_id.empty()) json.Member("MessageGroupId", message.group_id);
    if (!message.deduplication_id.empty()) {
      json.Member("MessageDeduplicationId", message.deduplication_id);
    }
    WriteAttributes(json, message.attributes);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return body;
}

std::string WriteEntries(const std::string& queue_url, const std::vector<sqs::Entry>& entries) {
  std::string body;
  base::JsonWriter json(body);
  json.BeginObject().Member("QueueUrl", queue_url).Key("Entries").BeginArray();
  for (const sqs::Entry& entry : entries) {
    json.BeginObject().Member("Id", entry.id).Member("ReceiptHandle", entry.receipt_handle);
    if (entry.visibility_timeout) json.Key("VisibilityTimeout").Int(*entry.visibility_timeout);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return body;
}

base::Result<std::vector<SendResult>> ReadSendResults(const std::vector<SqsMessage>& messages,
                                                      std::string_view body) {
  const auto answer = sqs::ParseBatchResult(sqs::Protocol::kJson, body);
  if (!answer) return answer.error();
  auto matched = MatchResults(IdsOf(messages), *answer);
  if (!matched) return matched.error();
  std::vector<SendResult> results;
  for (size_t i = 0; i < messages.size(); ++i) {
    SendResult& result = results.emplace_back();
    static_cast<EntryResult&>(result) = std::move((*matched)[i]);
    for (const sqs::BatchSuccess& success : answer->successful) {
      if (success.id != result.id) continue;
      result.message_id = success.message_id;
      result.sequence_number = success.sequence_number;
      CheckDigests(messages[i], success, result);
    }
  }
  return results;
}

base::Result<std::vector<EntryResult>> ReadEntryResults(const std::vector<sqs::Entry>& entries,
                                                        std::string_view body) {
  const auto answer = sqs::ParseBatchResult(sqs::Protocol::kJson, body);
  if (!answer) return answer.error();
  return MatchResults(IdsOf(entries), *answer);
}

base::Result<std::vector<SqsReceived>> ReadMessages(std::string_view body) {
  const auto answer = ParseObject(body);
  if (!answer) return answer.error();
  std::vector<SqsReceived> messages;
  const Json list = answer->Find("Messages").value_or(Json());
  for (const Json& element : list.Elements()) {
    SqsReceived& message = messages.emplace_back();
    message.message_id = element.String("MessageId").value_or("");
    message.receipt_handle = element.String("ReceiptHandle").value_or("");
    message.body = element.String("Body").value_or("");
    if (message.receipt_handle.empty()) {
      return Error{ErrorCode::kInvalid, "a message without a ReceiptHandle"};
    }
    auto attributes = ReadMessageAttributes(element);
    if (!attributes) return attributes.error();
    message.attributes = std::move(*attributes);
  }
  return messages;
}

base::Result<std::map<std::string, std::string>> ReadAttributes(std::string_view body) {
  const auto answer = ParseObject(body);
  if (!answer) return answer.error();
  std::map<std::string, std::string> attributes;
  const Json object = answer->Find("Attributes").value_or(Json());
  for (const std::string& name : object.Keys()) {
    attributes[name] = object.String(name).value_or("");
  }
  return attributes;
}

std::string AttributesMd5(std::vector<SqsAttribute> attributes) {
  std::sort(attributes.begin(), attributes.end(),
            [](const SqsAttribute& a, const SqsAttribute& b) { return a.name < b.name; });
  std::string text;
  for (const SqsAttribute& attribute : attributes) {
    AppendCounted(text, attribute.name);
    AppendCounted(text, DataTypeOf(attribute));
    text += attribute.binary ? '\2' : '\1';
    AppendCounted(text, attribute.value);
  }
  return crypto::Md5Hex(text);
}

}  // namespace leasehold::aws
