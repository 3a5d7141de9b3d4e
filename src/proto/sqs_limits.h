// What SQS itself limits, with where each number was read: "Amazon SQS API Reference" (API), the
// developer guide's quota pages (guide). Values only. Who checks them: a client of SQS before it
// sends (aws/sqs_client.h); what a gate lets through is SQS's to judge.
#pragma once

#include <cstddef>
#include <string_view>

namespace leasehold::proto::sqs {

inline constexpr size_t kBatchEntriesMax = 10;  // API: SendMessageBatch, DeleteMessageBatch, ...
// guide, "message quotas": 1 MiB for a message with its attributes and for all of a batch, since
// August 2025; 256 KiB before that. Queues may be set lower (MaximumMessageSize).
inline constexpr size_t kMessageBytesMax = size_t{1024} * 1024;
inline constexpr size_t kBatchBytesMax = kMessageBytesMax;
inline constexpr size_t kAttributesMax = 10;  // guide: message attributes
inline constexpr size_t kEntryIdMax = 80;     // API: letters, digits, '-' and '_'
inline constexpr size_t kQueueNameMax = 80;   // guide: with ".fifo", if it has it
inline constexpr size_t kGroupIdMax = 128;    // API: MessageGroupId, MessageDeduplicationId
// API (DeleteMessage): 1024 for what we hand out ourselves; bounded generously, as emulators and
// standard queues make them as they like.
inline constexpr size_t kReceiptHandleMax = 4096;
inline constexpr int kReceiveMessagesMax = 10;           // API: MaxNumberOfMessages, 1..10
inline constexpr int kWaitSecondsMax = 20;               // API: WaitTimeSeconds, 0..20
inline constexpr int kVisibilitySecondsMax = 12 * 3600;  // API: VisibilityTimeout, 0..43200
inline constexpr int kDelaySecondsMax = 900;             // API: DelaySeconds, 0..900

// What a message's text may hold (API: SendMessage): UTF-8 of #x9 | #xA | #xD | #x20 to #xD7FF |
// #xE000 to #xFFFD | #x10000 to #x10FFFF. Everything else is refused (InvalidMessageContents).
bool IsMessageText(std::string_view bytes);
// 1 to 80 letters, digits, '-' and '_'.
bool IsEntryId(std::string_view id);
// 1 to 80 letters, digits, '-' and '_', the last 5 of which may be ".fifo".
bool IsQueueName(std::string_view name);

}  // namespace leasehold::proto::sqs
