// What the bench's SQS answers: the shapes of SQS's AWS JSON 1.0 protocol for sending, receiving
// and deleting. It is no queue: every receive gets new messages with new receipt handles, at once,
// and nothing is remembered. Owned by the one server (sqs_upstream.h). Invariant: an answer that
// is no error is one that an SDK takes, its checksums included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::bench {

struct Answer {
  int status = 200;
  std::string_view error;  // of x-amzn-query-error; empty: none
  std::string_view body;   // valid until the next answer
};

class SqsAnswers {
 public:
  SqsAnswers();

  // `target` is X-Amz-Target's value.
  Answer Of(std::string_view target, std::string_view body);
  Answer Refusal(int status, std::string_view code, std::string_view message);

  // {"SendMessage":n,...}: how many of each were answered with 200.
  std::string Counts(uint64_t signatures_checked) const;

 private:
  Answer Send(std::string_view request);
  Answer Receive(std::string_view request);
  Answer Delete(std::string_view request);
  void AppendMessage();

  const std::string text_;      // of every message
  const std::string text_md5_;  // its checksum
  std::string body_;
  std::string handle_;
  uint64_t ids_ = 0;  // last message id and receipt handle given out
  uint64_t sent_ = 0;
  uint64_t receives_ = 0;
  uint64_t deletes_ = 0;
};

}  // namespace leasehold::bench
