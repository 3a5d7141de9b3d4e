// What the two readers of requests (sqs_parse_json.cc, sqs_parse_query.cc) and the writer share.
// Private to proto/sqs: gates see sqs.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proto/sqs.h"

namespace leasehold::proto::sqs {

// What SDKs put before an action in X-Amz-Target.
inline constexpr std::string_view kTargetPrefix = "AmazonSQS.";

// The request's `source` is filled in; nullopt: understood.
std::optional<Fault> ParseJsonRequest(RequestText& text, ClientRequest& request);
std::optional<Fault> ParseQueryRequest(const RequestText& text, ClientRequest& request);

// Sets action and name; a Fault for what is no name of an action at all.
std::optional<Fault> SetAction(ClientRequest& request, std::string_view name);

// "DeleteMessageBatchRequestEntry" of DeleteMessageBatch: a batch's entries in a form.
std::string EntryPrefix(const ClientRequest& request);
// "DeleteMessageBatchRequestEntry.3.ReceiptHandle" of it: 3 and "ReceiptHandle".
struct EntryField {
  size_t number = 0;
  std::string_view rest;
};
std::optional<EntryField> ParseEntryField(std::string_view prefix, std::string_view name);

}  // namespace leasehold::proto::sqs
