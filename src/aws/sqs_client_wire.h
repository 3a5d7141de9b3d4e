// What SqsClient writes and reads: bodies of AWS JSON 1.0. Pure; for SqsClient alone.
//
// Invariant: an answer of 200 that is not about exactly the entries that were sent is an error, and
// a message whose MD5 is another's counts as failed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "aws/sqs_batch.h"
#include "base/result.h"
#include "proto/sqs.h"

namespace leasehold::aws {

std::string WriteSendBatch(const std::string& queue_url, const std::vector<SqsMessage>& messages);
// DeleteMessageBatch, and ChangeMessageVisibilityBatch where entries have a time.
std::string WriteEntries(const std::string& queue_url,
                         const std::vector<proto::sqs::Entry>& entries);

base::Result<std::vector<SendResult>> ReadSendResults(const std::vector<SqsMessage>& messages,
                                                      std::string_view body);
base::Result<std::vector<EntryResult>> ReadEntryResults(
    const std::vector<proto::sqs::Entry>& entries, std::string_view body);
base::Result<std::vector<SqsReceived>> ReadMessages(std::string_view body);
base::Result<std::map<std::string, std::string>> ReadAttributes(std::string_view body);

// MD5 of a message's attributes as SQS forms it (developer guide, "Calculating the MD5 message
// digest for message attributes").
std::string AttributesMd5(std::vector<SqsAttribute> attributes);

}  // namespace leasehold::aws
