#include "gate/sqs_answers.h"

#include <array>
#include <utility>

#include "base/text.h"

namespace leasehold::gate {
namespace {

namespace sqs = proto::sqs;
using sqs::Fault;
using sqs::FaultKind;
using sqs::Protocol;

std::string Text(std::string_view text) { return std::string(text); }

std::string_view Why(Refusal reason) {
  switch (reason) {
    case Refusal::kClosed: return "is not held here";
    case Refusal::kDraining: return "is being given up here";
    case Refusal::kExpired: return "ran out here and is being looked for again";
    case Refusal::kHoldFull:
      return "is being confirmed, and as many requests as allowed wait for it";
    case Refusal::kHoldTimeout: return "was not confirmed in time";
    case Refusal::kMaxConnections: return "has as many connections as allowed";
    case Refusal::kLeaving: return "is not held here any more, and this instance is going away";
  }
  return "does not allow it";
}

}  // namespace

std::string SqsRefusalText(const SqsSpeaker& speaker, Refusal reason) {
  return "leasehold: the lease \"" + Text(speaker.lease) + "\" " + Text(Why(reason)) + " (state " +
         Text(speaker.state) + "): " + Text(speaker.action) +
         " was not sent to SQS; it may be tried again, and is taken by the instance that holds the "
         "lease";
}

std::string SqsCutText(const SqsSpeaker& speaker) {
  return "leasehold: the lease \"" + Text(speaker.lease) + "\" ended (state " +
         Text(speaker.state) + ") while " + Text(speaker.action) +
         " was with SQS: it may or may not have been done";
}

std::string SqsFormerText(const SqsSpeaker& speaker) {
  return "leasehold: the message was received under an earlier term of the lease \"" +
         Text(speaker.lease) +
         "\", or was given back when it ended (state now: " + Text(speaker.state) +
         "): " + Text(speaker.action) + " is refused for it; SQS hands the message out again";
}

std::string SqsLoopText(std::string_view endpoint) {
  return "leasehold: this request came from an sqs gate: the gate's upstream " + Text(endpoint) +
         " leads back to a gate itself; give it the endpoint of SQS (the environment's "
         "AWS_ENDPOINT_URL_SQS is for the application alone)";
}

Fault SqsNoAnswerFault(Protocol protocol, const base::Error& error) {
  const FaultKind kind = error.code == base::ErrorCode::kRefused ? FaultKind::kAccessDenied
                         : error.code == base::ErrorCode::kLimit ? FaultKind::kThrottled
                                                                 : FaultKind::kUnavailable;
  const char* whose = kind == FaultKind::kAccessDenied
                          ? "leasehold: the sidecar has no credentials to sign with: "
                          : "leasehold: no answer of SQS: ";
  return sqs::MakeFault(protocol, kind, whose + error.message);
}

Fault SqsHttpFault(Protocol protocol, int status, std::string_view message) {
  if (status == 413) {
    return sqs::MakeFault(protocol, FaultKind::kRequestTooLarge, "leasehold: " + Text(message));
  }
  if (status == 503) {
    return sqs::MakeFault(protocol, FaultKind::kThrottled, "leasehold: " + Text(message));
  }
  Fault fault;
  fault.protocol = protocol;
  fault.status = status;
  fault.code = status == 408 ? "RequestTimeout" : "MalformedHttpRequest";
  fault.shape = "com.amazon.coral.service#" + fault.code;
  fault.message = "leasehold: " + Text(message);
  fault.sender = true;
  return fault;
}

Protocol SqsProtocolOf(std::string_view content_type, std::string_view target) {
  const bool json =
      !target.empty() || base::ToLower(content_type).find("json") != std::string::npos;
  return json ? Protocol::kJson : Protocol::kQuery;
}

bool SqsRefusesCredentials(const aws::Response& response) {
  if (!response.error) return false;
  return response.error->trouble == aws::Trouble::kBadCredentials ||
         response.error->trouble == aws::Trouble::kExpired ||
         response.error->trouble == aws::Trouble::kDenied;
}

Fault SqsCredentialsFault(Protocol protocol, const aws::Response& response,
                          std::string_view credentials) {
  Fault fault;
  fault.protocol = protocol;
  fault.status = response.status;
  fault.code = response.error->code.empty() ? "AccessDenied" : response.error->code;
  fault.shape = "com.amazon.coral.service#" + fault.code;
  fault.sender = response.status < 500;
  fault.message =
      "leasehold: SQS refused the sidecar's credentials (from " + Text(credentials) +
      "), with which it signs in place of the application's: " + response.error->message;
  return fault;
}

sqs::Answer SqsPassOn(aws::Response&& response) {
  // Of what SQS says beside the body: how to read it, its id, and how long to wait.
  constexpr std::array<std::string_view, 4> kNames = {"x-amzn-requestid", "x-amzn-query-error",
                                                      "x-amzn-errortype", "retry-after"};
  sqs::Answer answer;
  answer.status = response.status;
  answer.content_type = Text(response.Header("content-type"));
  for (auto& [name, value] : response.headers) {
    for (const std::string_view known : kNames) {
      if (base::EqualsIgnoreCase(name, known)) answer.headers.emplace_back(name, value);
    }
  }
  answer.body = std::move(response.body);
  return answer;
}

std::string_view SqsResultOf(int status) {
  if (status < 400) return "ok";
  return status < 500 ? "client_error" : "server_error";
}

}  // namespace leasehold::gate
