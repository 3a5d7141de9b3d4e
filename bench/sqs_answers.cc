#include "sqs_answers.h"

#include <cstdio>

#include "base/json_writer.h"
#include "crypto/digest.h"
#include "proto/json.h"

namespace leasehold::bench {
namespace {

constexpr size_t kTextBytes = 1024;  // as the HTTP part's answers
constexpr uint64_t kMessagesMax = 10;
// SQS's own handles are about so long.
constexpr size_t kHandleBytes = 188;
constexpr std::string_view kHandlePrefix = "AQEBbench";

// SQS gives UUIDs; ours count.
std::string MessageId(uint64_t number) {
  char id[48];
  const int length = std::snprintf(id, sizeof id, "00000000-0000-4000-8000-%012llx",
                                   static_cast<unsigned long long>(number));
  return {id, static_cast<size_t>(length)};
}

}  // namespace

SqsAnswers::SqsAnswers()
    : text_(kTextBytes, 'x'), text_md5_(crypto::Md5Hex(text_)), handle_(kHandleBytes, 'A') {}

Answer SqsAnswers::Of(std::string_view target, std::string_view body) {
  constexpr std::string_view kService = "AmazonSQS.";
  if (!target.starts_with(kService)) {
    return Refusal(400, "InvalidAction", "X-Amz-Target must be AmazonSQS.<action>");
  }
  const std::string_view action = target.substr(kService.size());
  if (action == "SendMessage") return Send(body);
  if (action == "ReceiveMessage") return Receive(body);
  if (action == "DeleteMessage") return Delete(body);
  return Refusal(400, "UnsupportedOperation",
                 "the bench's SQS does SendMessage, ReceiveMessage and DeleteMessage");
}

Answer SqsAnswers::Refusal(int status, std::string_view code, std::string_view message) {
  body_.clear();
  base::JsonWriter(body_)
      .BeginObject()
      .Member("__type", "com.amazonaws.sqs#" + std::string(code))
      .Member("message", message)
      .EndObject();
  return {status, code, body_};
}

Answer SqsAnswers::Send(std::string_view request) {
  const auto json = proto::Json::Parse(request);
  const auto text = json.ok() ? json->String("MessageBody") : std::nullopt;
  if (!text || !json->String("QueueUrl")) {
    return Refusal(400, "MissingParameter", "QueueUrl and MessageBody must be given");
  }
  body_.clear();
  base::JsonWriter(body_)
      .BeginObject()
      .Member("MD5OfMessageBody", *text == text_ ? text_md5_ : crypto::Md5Hex(*text))
      .Member("MessageId", MessageId(++ids_))
      .EndObject();
  ++sent_;
  return {200, {}, body_};
}

Answer SqsAnswers::Receive(std::string_view request) {
  const auto json = proto::Json::Parse(request);
  if (!json.ok() || !json->String("QueueUrl")) {
    return Refusal(400, "MissingParameter", "QueueUrl must be given");
  }
  const uint64_t count = json->Uint("MaxNumberOfMessages").value_or(1);
  if (count < 1 || count > kMessagesMax) {
    return Refusal(400, "InvalidParameterValue", "MaxNumberOfMessages must be 1 to 10");
  }
  body_ = "{\"Messages\":[";
  for (uint64_t i = 0; i < count; ++i) {
    if (i > 0) body_ += ',';
    AppendMessage();
  }
  body_ += "]}";
  ++receives_;
  return {200, {}, body_};
}

void SqsAnswers::AppendMessage() {
  const std::string id = MessageId(++ids_);
  handle_.replace(0, kHandlePrefix.size(), kHandlePrefix);
  handle_.replace(kHandlePrefix.size(), id.size(), id);
  base::JsonWriter(body_)
      .BeginObject()
      .Member("MessageId", id)
      .Member("ReceiptHandle", handle_)
      .Member("MD5OfBody", text_md5_)
      .Member("Body", text_)
      .EndObject();
}

Answer SqsAnswers::Delete(std::string_view request) {
  const auto json = proto::Json::Parse(request);
  const auto handle = json.ok() ? json->String("ReceiptHandle") : std::nullopt;
  if (!handle || !handle->starts_with(kHandlePrefix) || handle->size() != kHandleBytes) {
    return Refusal(404, "ReceiptHandleIsInvalid", "ReceiptHandle is none that was given out here");
  }
  ++deletes_;
  return {};
}

std::string SqsAnswers::Counts(uint64_t signatures_checked) const {
  std::string text;
  base::JsonWriter(text)
      .BeginObject()
      .Key("SendMessage")
      .Uint(sent_)
      .Key("ReceiveMessage")
      .Uint(receives_)
      .Key("DeleteMessage")
      .Uint(deletes_)
      .Key("SignaturesChecked")
      .Uint(signatures_checked)
      .EndObject();
  return text;
}

}  // namespace leasehold::bench
