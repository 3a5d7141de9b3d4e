// What an sqs gate says by itself, in the client's own protocol: sentences and the errors they come
// in. Pure. Which errors: what an SDK repeats is ServiceUnavailable (503: not holding, no answer)
// and RequestThrottled (a limit of ours); a handle of a term that is over is
// ReceiptHandleIsInvalid, because no repetition will ever be taken: an SDK tells the application at
// once, and a consumer (sqs-consumer, say) notes the error and goes on with the next message.
#pragma once

#include <string>
#include <string_view>

#include "aws/service.h"
#include "base/result.h"
#include "gate/admission.h"
#include "proto/sqs.h"
#include "proto/sqs_answer.h"
#include "proto/sqs_fault.h"

namespace leasehold::gate {

// Who speaks and of what.
struct SqsSpeaker {
  std::string_view lease;
  std::string_view state;   // the lease's, a word of DESIGN 2.4
  std::string_view action;  // "DeleteMessage"
};

std::string SqsRefusalText(const SqsSpeaker& speaker, Refusal reason);
// The permit ended while it was with SQS.
std::string SqsCutText(const SqsSpeaker& speaker);
std::string SqsFormerText(const SqsSpeaker& speaker);
// A request with our own mark has come back.
std::string SqsLoopText(std::string_view endpoint);

// No answer came from SQS.
proto::sqs::Fault SqsNoAnswerFault(proto::sqs::Protocol protocol, const base::Error& error);
// An HTTP request that is none, too large or too slow.
proto::sqs::Fault SqsHttpFault(proto::sqs::Protocol protocol, int status, std::string_view message);
// By its head alone.
proto::sqs::Protocol SqsProtocolOf(std::string_view content_type, std::string_view target);

// Is it our signature or our rights that SQS refuses, not the client's?
bool SqsRefusesCredentials(const aws::Response& response);
proto::sqs::Fault SqsCredentialsFault(proto::sqs::Protocol protocol, const aws::Response& response,
                                      std::string_view credentials);
// What SQS said, with the headers of it that an SDK reads.
proto::sqs::Answer SqsPassOn(aws::Response&& response);

// The label of the metrics.
std::string_view SqsResultOf(int status);

}  // namespace leasehold::gate
