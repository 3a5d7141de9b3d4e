// SqsBatch: the arithmetic of SQS's batches: which messages fit into one call, what its answer says
// of each, and which must be sent again. Pure values; for whoever sends (the bridge), and for
// SqsClient.
//
// Invariant: every message of a call has exactly one result, in the order of the call.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "proto/sqs_answer.h"

namespace leasehold::aws {

struct SqsAttribute {
  std::string name;
  std::string value;    // bytes, if `binary`
  bool binary = false;  // "Binary", else "String"
};
struct SqsMessage {
  std::string id;  // of the entry, distinct in its batch: 1..80 of letters, digits, '-' and '_'
  std::string body;
  std::vector<SqsAttribute> attributes;
  std::string group_id;          // FIFO queues; empty: none
  std::string deduplication_id;  // FIFO queues; empty: none
};

std::string_view DataTypeOf(const SqsAttribute& attribute);  // "String", "Binary"

// What SQS counts of a message: its text and its attributes' names, types and values.
size_t MessageBytes(const SqsMessage& message);

// A body for bytes of any kind: as they are if SQS can carry them as text (and they are not empty),
// else as base64 with the attribute "ContentEncoding" = "base64" (which any receiver can decode).
void SetPayload(SqsMessage& message, std::string_view bytes);
inline constexpr std::string_view kEncodingAttribute = "ContentEncoding";
inline constexpr std::string_view kEncodingBase64 = "base64";
// The base64 of no bytes would be empty, and SQS takes no empty body: one that no bytes have.
inline constexpr std::string_view kEmptyBase64 = "=";
// The bytes again, at the receiver's. kInvalid: an unknown encoding, or a body that is not of it.
base::Result<std::string> GetPayload(std::string_view body,
                                     const std::vector<SqsAttribute>& attributes);

// Consecutive runs of `messages`, each within the limits of one call, in order: sizes of the runs.
// A message that is alone too long makes kLimit with its id.
base::Result<std::vector<size_t>> SplitBatches(const std::vector<SqsMessage>& messages);

// kInvalid: not 1 to 10, or too long together; ids that are none, or not distinct.
base::Status CheckBatch(const std::vector<SqsMessage>& messages);
base::Status CheckEntryIds(std::vector<std::string_view> ids);

// The ids of `entries` (messages, or what is told of them), in order. Views of `entries`.
template <typename Entry>
std::vector<std::string_view> IdsOf(const std::vector<Entry>& entries) {
  std::vector<std::string_view> ids;
  ids.reserve(entries.size());
  for (const Entry& entry : entries) ids.push_back(entry.id);
  return ids;
}

// What became of one entry.
struct EntryResult {
  std::string id;
  bool ok = false;
  proto::sqs::EntryFailure failure;  // !ok
  // !ok: it may succeed if sent again. False for the sender's own faults.
  bool again_can_help = false;
};
struct SendResult : EntryResult {
  std::string message_id;       // ok
  std::string sequence_number;  // ok, FIFO queues
};

struct SqsReceived {
  std::string message_id;
  std::string receipt_handle;
  std::string body;
  std::vector<SqsAttribute> attributes;
};

// The messages of a call that failed and may succeed if sent again: these and no others, in order.
std::vector<SqsMessage> ToSendAgain(const std::vector<SqsMessage>& messages,
                                    const std::vector<SendResult>& results);

}  // namespace leasehold::aws
