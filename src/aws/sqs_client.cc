#include "aws/sqs_client.h"

#include <utility>

#include "aws/sqs_client_wire.h"
#include "base/json_writer.h"
#include "loop/timer.h"
#include "proto/json.h"
#include "proto/sqs_limits.h"

namespace leasehold::aws {
namespace {

namespace sqs = proto::sqs;
using base::Error;
using base::ErrorCode;
using base::Result;

// An error that is there before anything is sent, told later.
class RefusedCall final : public Call {
 public:
  RefusedCall(loop::Loop& loop, std::function<void()> tell)
      : tell_(std::move(tell)), timer_(loop, [this] {
          const std::function<void()> told = std::move(tell_);
          told();
        }) {
    timer_.StartAfter(base::Duration::Zero());
  }

 private:
  std::function<void()> tell_;
  loop::Timer timer_;
};

// What an answer that refuses says about doing it again.
SqsFailure FailureOf(const ApiError& answer, const std::string& what) {
  SqsFailure failure;
  failure.answer = answer;
  failure.error = {ErrorCode::kRefused, what + ": SQS answered " + std::to_string(answer.status) +
                                            " " + answer.code +
                                            (answer.message.empty() ? "" : ": " + answer.message)};
  switch (answer.trouble) {
    case Trouble::kServer:
    case Trouble::kUnknown:
      failure.may_have_happened = answer.status >= 500;
      failure.again_can_help = answer.status >= 500;
      break;
    case Trouble::kThrottled:
    case Trouble::kClockSkew:  // the next call is signed for the right time
    case Trouble::kExpired:    // and with other credentials
    case Trouble::kBadCredentials: failure.again_can_help = true; break;
    case Trouble::kDenied:
    case Trouble::kConflict:
    case Trouble::kNotFound:
    case Trouble::kInvalid: break;
  }
  if (failure.again_can_help) failure.error.code = ErrorCode::kUnavailable;
  if (answer.trouble == Trouble::kNotFound) failure.error.code = ErrorCode::kNotFound;
  return failure;
}

SqsFailure Unanswered(const Error& error, const std::string& what) {
  SqsFailure failure;
  failure.error = {error.code, what + ": " + error.message};
  failure.again_can_help = true;
  failure.may_have_happened = error.code != ErrorCode::kRefused;  // no credentials: nothing sent
  return failure;
}

// A 200 whose body says something else than SQS does: something was done, we do not know what.
SqsFailure Unreadable(const Error& error, const std::string& what) {
  return Unanswered({ErrorCode::kUnavailable, "SQS's answer cannot be read: " + error.message},
                    what);
}

Request MakeRequest(sqs::Action action, std::string body, base::Duration timeout, bool idempotent) {
  Request request;
  request.headers = {{"Content-Type", "application/x-amz-json-1.0"},
                     {"X-Amz-Target", "AmazonSQS." + std::string(sqs::ActionName(action))}};
  request.body = std::move(body);
  request.timeout = timeout;
  request.body_bytes_max = sqs::kAnswerBytesMax;
  request.idempotent = idempotent;
  return request;
}

// Sends, and turns whatever comes into a T or a failure. `what` begins its sentence.
template <typename T>
std::unique_ptr<Call> Ask(Service& service, Request&& request, std::string what,
                          std::function<Result<T>(std::string_view)> read, SqsDone<T> done) {
  return service.Start(std::move(request), [what = std::move(what), read = std::move(read),
                                            done = std::move(done)](Result<Response> answer) {
    if (!answer) return done(Unanswered(answer.error(), what));
    if (answer->error) return done(FailureOf(*answer->error, what));
    if (answer->status != 200) {
      return done(Unreadable(
          {ErrorCode::kInvalid, "its status is " + std::to_string(answer->status)}, what));
    }
    Result<T> value = read(answer->body);
    if (!value) return done(Unreadable(value.error(), what));
    done(std::move(*value));
  });
}

template <typename T>
std::unique_ptr<Call> Refuse(loop::Loop& loop, const std::string& what, const Error& why,
                             SqsDone<T> done) {
  SqsFailure failure;
  failure.error = {why.code, what + ": " + why.message};
  return std::make_unique<RefusedCall>(
      loop, [failure = std::move(failure), done = std::move(done)] { done(failure); });
}

std::string Sentence(sqs::Action action, const std::string& queue) {
  return std::string(sqs::ActionName(action)) + " of " + queue;
}

std::unique_ptr<Call> AskAboutEntries(loop::Loop& loop, Service& service, sqs::Action action,
                                      const std::string& queue_url,
                                      const std::vector<sqs::Entry>& entries,
                                      base::Duration timeout,
                                      SqsDone<std::vector<EntryResult>> done) {
  std::string what = Sentence(action, queue_url);
  if (const base::Status status = CheckEntryIds(IdsOf(entries)); !status) {
    return Refuse(loop, what, status.error(), std::move(done));
  }
  return Ask<std::vector<EntryResult>>(
      service, MakeRequest(action, WriteEntries(queue_url, entries), timeout, false),
      std::move(what), [entries](std::string_view body) { return ReadEntryResults(entries, body); },
      std::move(done));
}

}  // namespace

std::unique_ptr<Call> SqsClient::SendMessageBatch(const std::string& queue_url,
                                                  const std::vector<SqsMessage>& messages,
                                                  base::Duration timeout,
                                                  SqsDone<std::vector<SendResult>> done) {
  constexpr auto kAction = sqs::Action::kSendMessageBatch;
  std::string what = Sentence(kAction, queue_url);
  if (const base::Status status = CheckBatch(messages); !status) {
    return Refuse(loop_, what, status.error(), std::move(done));
  }
  return Ask<std::vector<SendResult>>(
      service_, MakeRequest(kAction, WriteSendBatch(queue_url, messages), timeout, false),
      std::move(what),
      [messages](std::string_view body) { return ReadSendResults(messages, body); },
      std::move(done));
}

std::unique_ptr<Call> SqsClient::ReceiveMessage(const std::string& queue_url,
                                                const ReceiveOptions& options,
                                                base::Duration timeout,
                                                SqsDone<std::vector<SqsReceived>> done) {
  std::string body;
  base::JsonWriter json(body);
  json.BeginObject().Member("QueueUrl", queue_url);
  json.Key("MaxNumberOfMessages").Int(options.max_messages);
  json.Key("WaitTimeSeconds").Int(options.wait_seconds);
  if (options.visibility_timeout) json.Key("VisibilityTimeout").Int(*options.visibility_timeout);
  json.Key("MessageAttributeNames").BeginArray().String("All").EndArray().EndObject();
  constexpr auto kAction = sqs::Action::kReceiveMessage;
  // Not idempotent: what a lost answer held is invisible until its time is over.
  return Ask<std::vector<SqsReceived>>(
      service_, MakeRequest(kAction, std::move(body), timeout, false), Sentence(kAction, queue_url),
      &ReadMessages, std::move(done));
}

std::unique_ptr<Call> SqsClient::DeleteMessageBatch(const std::string& queue_url,
                                                    const std::vector<sqs::Entry>& entries,
                                                    base::Duration timeout,
                                                    SqsDone<std::vector<EntryResult>> done) {
  return AskAboutEntries(loop_, service_, sqs::Action::kDeleteMessageBatch, queue_url, entries,
                         timeout, std::move(done));
}

std::unique_ptr<Call> SqsClient::ChangeMessageVisibilityBatch(
    const std::string& queue_url, const std::vector<sqs::Entry>& entries, base::Duration timeout,
    SqsDone<std::vector<EntryResult>> done) {
  constexpr auto kAction = sqs::Action::kChangeMessageVisibilityBatch;
  for (const sqs::Entry& entry : entries) {
    if (entry.visibility_timeout && *entry.visibility_timeout >= 0 &&
        *entry.visibility_timeout <= sqs::kVisibilitySecondsMax) {
      continue;
    }
    return Refuse(
        loop_, Sentence(kAction, queue_url),
        {ErrorCode::kInvalid, "entry " + entry.id + " needs a visibility of 0 to 43200 seconds"},
        std::move(done));
  }
  return AskAboutEntries(loop_, service_, kAction, queue_url, entries, timeout, std::move(done));
}

std::unique_ptr<Call> SqsClient::GetQueueUrl(const std::string& queue_name, base::Duration timeout,
                                             SqsDone<std::string> done) {
  constexpr auto kAction = sqs::Action::kGetQueueUrl;
  std::string body = "{\"QueueName\":" + base::JsonQuote(queue_name) + "}";
  const auto read = [](std::string_view answer) -> Result<std::string> {
    const auto json = proto::Json::Parse(answer);
    if (!json) return json.error();
    if (const auto url = json->String("QueueUrl"); url && !url->empty()) return *url;
    return Error{ErrorCode::kInvalid, "no QueueUrl"};
  };
  return Ask<std::string>(service_, MakeRequest(kAction, std::move(body), timeout, true),
                          Sentence(kAction, queue_name), read, std::move(done));
}

std::unique_ptr<Call> SqsClient::GetQueueAttributes(
    const std::string& queue_url, base::Duration timeout,
    SqsDone<std::map<std::string, std::string>> done) {
  constexpr auto kAction = sqs::Action::kGetQueueAttributes;
  std::string body =
      "{\"QueueUrl\":" + base::JsonQuote(queue_url) + ",\"AttributeNames\":[\"All\"]}";
  return Ask<std::map<std::string, std::string>>(
      service_, MakeRequest(kAction, std::move(body), timeout, true), Sentence(kAction, queue_url),
      &ReadAttributes, std::move(done));
}

std::unique_ptr<Call> SqsClient::Forward(sqs::Outgoing outgoing, base::Duration timeout,
                                         std::function<void(Result<Response>)> done) {
  Request request;
  request.path = std::move(outgoing.path);
  request.headers = std::move(outgoing.headers);
  request.body = std::move(outgoing.body);
  request.timeout = timeout;
  request.body_bytes_max = sqs::kAnswerBytesMax;
  return service_.Start(std::move(request), std::move(done));
}

}  // namespace leasehold::aws
