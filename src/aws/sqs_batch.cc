#include "aws/sqs_batch.h"

#include <algorithm>

#include "base/base64.h"
#include "base/text.h"
#include "proto/sqs_limits.h"

namespace leasehold::aws {

namespace sqs = proto::sqs;

std::string_view DataTypeOf(const SqsAttribute& attribute) {
  return attribute.binary ? "Binary" : "String";
}

size_t MessageBytes(const SqsMessage& message) {
  size_t bytes = message.body.size();
  for (const SqsAttribute& attribute : message.attributes) {
    bytes += attribute.name.size() + DataTypeOf(attribute).size() + attribute.value.size();
  }
  return bytes;
}

void SetPayload(SqsMessage& message, std::string_view bytes) {
  std::erase_if(message.attributes,
                [](const SqsAttribute& a) { return a.name == kEncodingAttribute; });
  if (!bytes.empty() && sqs::IsMessageText(bytes)) {
    message.body = bytes;
    return;
  }
  // SQS takes no empty body, so nothing at all is a padding character of base64's and the
  // attribute.
  message.body = bytes.empty() ? std::string(kEmptyBase64) : base::Base64Encode(bytes);
  message.attributes.push_back({std::string(kEncodingAttribute), std::string(kEncodingBase64)});
}

base::Result<std::string> GetPayload(std::string_view body,
                                     const std::vector<SqsAttribute>& attributes) {
  const auto encoding =
      std::find_if(attributes.begin(), attributes.end(),
                   [](const SqsAttribute& a) { return a.name == kEncodingAttribute; });
  if (encoding == attributes.end()) return std::string(body);
  if (encoding->value == kEncodingBase64) {
    if (body == kEmptyBase64) return std::string();
    if (std::optional<std::string> bytes = base::Base64Decode(body)) return *std::move(bytes);
  }
  return base::Error{base::ErrorCode::kInvalid,
                     "a message's body is not of its " + std::string(kEncodingAttribute) + " \"" +
                         base::Printable(encoding->value, 40) + "\": base64 would be right"};
}

base::Status CheckBatch(const std::vector<SqsMessage>& messages) {
  const auto runs = SplitBatches(messages);
  if (!runs) return base::Error{base::ErrorCode::kInvalid, runs.error().message};
  if (runs->size() != 1) {
    return base::Error{base::ErrorCode::kInvalid,
                       "a batch of " + std::to_string(messages.size()) + " messages, but 1 to " +
                           std::to_string(sqs::kBatchEntriesMax) + " of at most " +
                           base::FormatSize(sqs::kBatchBytesMax) + " together are taken"};
  }
  return CheckEntryIds(IdsOf(messages));
}

base::Status CheckEntryIds(std::vector<std::string_view> ids) {
  if (ids.empty() || ids.size() > sqs::kBatchEntriesMax) {
    return base::Error{base::ErrorCode::kInvalid,
                       "a batch of " + std::to_string(ids.size()) + " entries, but 1 to " +
                           std::to_string(sqs::kBatchEntriesMax) + " are taken"};
  }
  for (const std::string_view id : ids) {
    if (!sqs::IsEntryId(id)) {
      return base::Error{base::ErrorCode::kInvalid,
                         "entry id \"" + base::Printable(id) +
                             "\": 1 to 80 letters, digits, '-' and '_' would be right"};
    }
  }
  std::sort(ids.begin(), ids.end());
  if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end()) {
    return base::Error{base::ErrorCode::kInvalid,
                       "entry id \"" + std::string(*twice) + "\" stands twice in one batch"};
  }
  return {};
}

base::Result<std::vector<size_t>> SplitBatches(const std::vector<SqsMessage>& messages) {
  std::vector<size_t> runs;
  size_t count = 0;
  size_t bytes = 0;
  for (const SqsMessage& message : messages) {
    const size_t more = MessageBytes(message);
    if (more > sqs::kMessageBytesMax) {
      return base::Error{base::ErrorCode::kLimit, "message " + base::Printable(message.id) +
                                                      " has " + std::to_string(more) +
                                                      " bytes, but SQS takes at most " +
                                                      std::to_string(sqs::kMessageBytesMax)};
    }
    if (count == sqs::kBatchEntriesMax || bytes + more > sqs::kBatchBytesMax) {
      runs.push_back(count);
      count = 0;
      bytes = 0;
    }
    ++count;
    bytes += more;
  }
  if (count > 0) runs.push_back(count);
  return runs;
}

std::vector<SqsMessage> ToSendAgain(const std::vector<SqsMessage>& messages,
                                    const std::vector<SendResult>& results) {
  std::vector<SqsMessage> again;
  for (const SqsMessage& message : messages) {
    const bool failed = std::any_of(results.begin(), results.end(), [&](const SendResult& result) {
      return result.id == message.id && !result.ok && result.again_can_help;
    });
    if (failed) again.push_back(message);
  }
  return again;
}

}  // namespace leasehold::aws
