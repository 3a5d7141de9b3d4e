// Requests that one call to SQS answers: everything but receives.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "gate/sqs_machine.h"
#include "proto/sqs_url.h"

namespace leasehold::gate {

namespace sqs = proto::sqs;
using base::Duration;
using base::MonoTime;
using loop::Loop;
using State = SqsExchange::State;

namespace {

// On everything that goes to SQS: an endpoint that leads back here is recognised by it.
constexpr std::string_view kGateMark = "Lease-Gate";
constexpr std::string_view kQueryMode = "x-amzn-query-mode";
// SDKs give a call 60 s (boto3) or longer; SQS answers in milliseconds, or not.
constexpr Duration kCallTimeout = Duration::Seconds(30);

sqs::Protocol ProtocolOf(const SqsConnection& connection) {
  if (!connection.has_head()) return sqs::Protocol::kQuery;
  return SqsProtocolOf(connection.head().Find("content-type"),
                       connection.head().Find("x-amz-target"));
}

bool SaysNotReceived(std::string_view code) {
  // Codes of both protocols: the message is not ours (any more), whatever we do.
  for (const std::string_view known : {"ReceiptHandleIsInvalid", "MessageNotInflight",
                                       "AWS.SimpleQueueService.MessageNotInflight"}) {
    if (code == known) return true;
  }
  return false;
}

}  // namespace

// ---- from the client ----

void SqsGate::OnBadRequest(SqsConnection& connection, int status, std::string_view message) {
  std::string text(message);
  if (status == 413) {
    text = "the request's body is larger than " + std::to_string(options().body_bytes_max) +
           " bytes (body_bytes_max); SQS takes messages of 1048576 bytes, all of a batch together";
  }
  CountRefused(status == 413 ? "too_large" : status == 503 ? "memory" : "http");
  connection.Answer(
      sqs::FaultAnswer(SqsHttpFault(ProtocolOf(connection), status, text), RequestId()), false,
      true);
}

bool SqsGate::RefuseLoop(SqsConnection& connection) {
  if (connection.head().Find(kGateMark).empty()) return false;
  CountRefused("loop");
  const std::string text = SqsLoopText(service_.endpoint().ToString());
  NoteTrouble("gate.sqs_loop", "a request of an sqs gate has come to an sqs gate", text);
  connection.Answer(sqs::FaultAnswer(sqs::MakeFault(ProtocolOf(connection),
                                                    sqs::FaultKind::kUnsupportedOperation, text),
                                     RequestId()),
                    false);
  return true;
}

void SqsGate::OnRequest(SqsConnection& connection) {
  if (RefuseLoop(connection)) return;
  const proto::http1::RequestHead& head = connection.head();
  const size_t mark = head.origin.find('?');
  sqs::RequestText text;
  text.method = head.method;
  text.path = head.origin.substr(0, mark);
  if (mark != std::string_view::npos) text.query = head.origin.substr(mark + 1);
  text.content_type = head.Find("content-type");
  text.target = head.Find("x-amz-target");
  text.body = connection.TakeBody();
  auto parsed = sqs::ParseRequest(std::move(text));
  if (const auto* fault = std::get_if<sqs::Fault>(&parsed)) {
    CountRefused("malformed");
    return connection.Answer(sqs::FaultAnswer(*fault, RequestId()), false);
  }
  SqsExchange& exchange = Add(connection);
  exchange.request = std::move(std::get<sqs::ClientRequest>(parsed));
  exchange.protocol = exchange.request.protocol;
  exchange.action = exchange.request.action;
  exchange.kind = sqs::KindOf(exchange.action);
  exchange.query_mode = base::EqualsIgnoreCase(head.Find(kQueryMode), "true");
  exchange.origin = sqs::OriginForClient(head.host, status().listen);
  if (FindQueue(exchange)) Begin(exchange);
}

// False: the request names something that is no queue, and is answered.
bool SqsGate::FindQueue(SqsExchange& exchange) {
  if (exchange.request.queue_url.empty()) return true;
  const auto url = sqs::ParseQueueUrl(exchange.request.queue_url, service_.endpoint().base_path);
  if (!url) {
    AnswerFault(exchange,
                sqs::MakeFault(exchange.protocol, sqs::FaultKind::kInvalidAddress,
                               "The address " + base::Printable(exchange.request.queue_url) +
                                   " is not valid for this endpoint."),
                "client_error");
    return false;
  }
  exchange.queue = url->path();
  exchange.queue_url = sqs::QueueUrlAt(service_.endpoint().ToString(), *url);
  return true;
}

bool SqsGate::SendMayPassUngated(const SqsExchange& exchange) const {
  return exchange.kind == sqs::Kind::kRead ||
         (exchange.kind == sqs::Kind::kSend && options().sqs.standby_send == StandbySend::kPass);
}

void SqsGate::Begin(SqsExchange& exchange) {
  if (exchange.kind == sqs::Kind::kReceive) return BeginReceive(exchange);
  if (SendMayPassUngated(exchange)) return Admitted(exchange, {});
  Ticket ticket;
  const Decision decision = Admit(ticket);
  if (decision.verdict == Verdict::kAdmit) return Admitted(exchange, std::move(ticket));
  if (decision.verdict != Verdict::kHold) return AnswerRefusal(exchange, decision.refusal);
  exchange.state = State::kHeld;
  if (!Hold(exchange)) AnswerRefusal(exchange, Refusal::kHoldFull);
}

void SqsGate::Serve(HoldEntry& entry, Ticket ticket) {
  Admitted(static_cast<SqsExchange&>(entry), std::move(ticket));
}

void SqsGate::Refuse(HoldEntry& entry, Refusal reason) {
  AnswerRefusal(static_cast<SqsExchange&>(entry), reason);
}

// ---- to SQS ----

void SqsGate::Admitted(SqsExchange& exchange, Ticket ticket) {
  exchange.gated = ticket.admitted();
  exchange.ticket = std::move(ticket);
  sqs::Rewrite rewrite;
  if (exchange.kind == sqs::Kind::kAcknowledge && !PickEntries(exchange, rewrite)) return;
  Call(exchange, rewrite, kCallTimeout);
}

// Which entries go on: not those of former terms. False: none does, and that is answered.
bool SqsGate::PickEntries(SqsExchange& exchange, sqs::Rewrite& rewrite) {
  const std::string text = SqsFormerText(Speaker(exchange));
  const MonoTime now = Loop::Now();
  for (const sqs::Entry& entry : exchange.request.entries) {
    const bool former = in_flight_.IsFormer(exchange.queue, entry.receipt_handle, now);
    if (exchange.request.batch) rewrite.keep.push_back(!former);
    if (former) {
      CountRefused("former_handle");
      exchange.refused.push_back({entry.id, "ReceiptHandleIsInvalid", text, true});
      continue;
    }
    in_flight_.BeginAcknowledge(exchange.queue, entry.receipt_handle);
    exchange.places.push_back({exchange.queue, entry.receipt_handle});
    exchange.sent_entries.push_back(entry);
  }
  if (exchange.refused.empty()) {
    rewrite.keep.clear();
    return true;
  }
  if (!exchange.places.empty()) return true;
  if (!exchange.request.batch) {
    AnswerFault(exchange,
                sqs::MakeFault(exchange.protocol, sqs::FaultKind::kReceiptHandleInvalid, text),
                "refused");
    return false;
  }
  const std::string id = RequestId();
  auto merged = sqs::MergeBatchResult(exchange.protocol, exchange.action, "", exchange.refused, id);
  CHECK(merged.ok(), "a batch result of our own is well-formed");
  Say(exchange, sqs::AnswerWith(exchange.protocol, std::move(merged).value(), id), "refused");
  return false;
}

void SqsGate::Call(SqsExchange& exchange, const sqs::Rewrite& rewrite_in, Duration timeout) {
  sqs::Rewrite rewrite = rewrite_in;
  if (!exchange.queue_url.empty()) rewrite.queue_url = exchange.queue_url;
  // A receive may be asked for again, with what is left of its wait.
  sqs::Outgoing outgoing =
      exchange.kind == sqs::Kind::kReceive
          ? sqs::WriteRequest(exchange.request, rewrite, service_.endpoint().base_path)
          : sqs::WriteRequest(std::move(exchange.request), rewrite, service_.endpoint().base_path);
  outgoing.headers.emplace_back(kGateMark, options().name);
  if (exchange.query_mode) outgoing.headers.emplace_back(kQueryMode, "true");
  exchange.state = State::kCalling;
  exchange.sent = Loop::Now();
  exchange.call = client_.Forward(
      std::move(outgoing), timeout, [this, &exchange](base::Result<aws::Response> result) {
        (exchange.kind == sqs::Kind::kReceive ? receive_latency_ : latency_)
            .Observe((Loop::Now() - exchange.sent).seconds());
        if (exchange.kind == sqs::Kind::kReceive) {
          OnReceiveAnswer(exchange, std::move(result));
        } else {
          OnAnswer(exchange, std::move(result));
        }
      });
}

// ---- from SQS ----

void SqsGate::OnAnswer(SqsExchange& exchange, base::Result<aws::Response> result) {
  if (exchange.kind == sqs::Kind::kAcknowledge) SettleEntries(exchange, result);
  if (exchange.action == sqs::Action::kSetQueueAttributes) queues_.Forget(exchange.queue);
  const bool may = !exchange.gated || MayPass();
  if (may) {
    HandOn(exchange, std::move(result));
  } else {
    AnswerFault(exchange,
                sqs::MakeFault(exchange.protocol, sqs::FaultKind::kUnavailable,
                               SqsCutText(Speaker(exchange))),
                "cut");
  }
  if (giving_back_) GiveBackSeen();  // what could not go while this was unanswered
}

void SqsGate::SettleEntries(SqsExchange& exchange, const base::Result<aws::Response>& result) {
  const bool answered = result.ok() && result->status < 500;
  const bool ok = answered && result->status < 300;
  if (!ok || !exchange.request.batch) {
    // Throttled, denied, a missing queue: nothing was done. No answer, 5xx: nobody knows.
    const std::string_view code =
        answered && result->error ? std::string_view(result->error->code) : std::string_view();
    for (size_t i = 0; i < exchange.places.size(); ++i) SettleEntry(exchange, i, ok, code);
  } else {
    const auto parsed = sqs::ParseBatchResult(exchange.protocol, result->body);
    for (size_t i = 0; i < exchange.places.size(); ++i) {
      bool done = false;
      std::string_view code;
      if (parsed.ok()) {
        const std::string& id = exchange.sent_entries[i].id;
        done = std::any_of(parsed->successful.begin(), parsed->successful.end(),
                           [&id](const sqs::BatchSuccess& entry) { return entry.id == id; });
        for (const sqs::EntryFailure& entry : parsed->failed) {
          if (entry.id == id) code = entry.code;
        }
      }
      SettleEntry(exchange, i, done, code);
    }
  }
  ArmExpiry();
  PumpPolls();
}

void SqsGate::SettleEntry(const SqsExchange& exchange, size_t i, bool ok, std::string_view code) {
  const SqsInFlight::Place& place = exchange.places[i];
  const bool deletes = exchange.action == sqs::Action::kDeleteMessage ||
                       exchange.action == sqs::Action::kDeleteMessageBatch;
  const int seconds = exchange.sent_entries[i].visibility_timeout.value_or(0);
  if ((ok && (deletes || seconds <= 0)) || (!ok && SaysNotReceived(code))) {
    in_flight_.Gone(place.queue, place.handle);
  } else if (ok) {
    in_flight_.Extended(place.queue, place.handle, Loop::Now() + Duration::Seconds(seconds));
  } else {
    in_flight_.AcknowledgeFailed(place.queue, place.handle);
  }
}

void SqsGate::HandOn(SqsExchange& exchange, base::Result<aws::Response> result) {
  if (!result.ok()) {
    NoteTrouble("gate.upstream", "SQS did not answer", result.error().message);
    return AnswerFault(exchange, SqsNoAnswerFault(exchange.protocol, result.error()), "no_answer");
  }
  if (SqsRefusesCredentials(*result)) {
    const std::string whose = service_.credentials().Describe();
    const sqs::Fault fault = SqsCredentialsFault(exchange.protocol, *result, whose);
    NoteTrouble("gate.sqs_credentials", "SQS refuses the sidecar's credentials", fault.message);
    return AnswerFault(exchange, fault, "credentials");
  }
  AnswerAnswered(exchange, std::move(result).value());
}

void SqsGate::AnswerAnswered(SqsExchange& exchange, aws::Response&& response) {
  const std::string_view result = SqsResultOf(response.status);
  if (response.status >= 300) return Say(exchange, SqsPassOn(std::move(response)), result);
  base::Result<std::string> body = std::string();
  if (!exchange.refused.empty()) {
    body = sqs::MergeBatchResult(exchange.protocol, exchange.action, response.body,
                                 exchange.refused, RequestId());
  } else {
    body = sqs::RewriteQueueUrls(
        exchange.protocol, exchange.action, response.body, [&](std::string_view text) {
          const auto url = sqs::ParseQueueUrl(text, service_.endpoint().base_path);
          return url ? sqs::QueueUrlAt(exchange.origin, *url) : std::string(text);
        });
  }
  if (!body.ok()) {
    NoteTrouble("gate.upstream", "SQS's answer is not what SQS says", body.error().message);
    return AnswerFault(exchange,
                       sqs::MakeFault(exchange.protocol, sqs::FaultKind::kInternal,
                                      "leasehold: " + body.error().message),
                       "server_error");
  }
  response.body = std::move(body).value();
  Say(exchange, SqsPassOn(std::move(response)), result);
}

// ---- to the client ----

void SqsGate::AnswerFault(SqsExchange& exchange, const sqs::Fault& fault, std::string_view result) {
  Say(exchange, sqs::FaultAnswer(fault, RequestId()), result);
}

void SqsGate::AnswerRefusal(SqsExchange& exchange, Refusal reason) {
  AnswerFault(exchange,
              sqs::MakeFault(exchange.protocol, sqs::FaultKind::kUnavailable,
                             SqsRefusalText(Speaker(exchange), reason)),
              "refused");
}

void SqsGate::Say(SqsExchange& exchange, const sqs::Answer& answer, std::string_view result) {
  CountRequest(exchange, result);
  SqsConnection* client = std::exchange(exchange.client, nullptr);
  const bool gated = exchange.gated && exchange.state == State::kCalling;
  Over(exchange);
  if (client == nullptr) return;
  client->exchange = nullptr;
  client->Answer(answer, gated);
}

// After a loss, or when grace is over: what is with SQS and may not end here. Not receives, which
// end elsewhere.
void SqsGate::CutExchanges() {
  for (size_t i = exchanges_.size(); i-- > 0;) {
    if (i >= exchanges_.size()) continue;
    SqsExchange& exchange = *exchanges_[i];
    if (!exchange.gated || exchange.state != State::kCalling ||
        exchange.kind == sqs::Kind::kReceive) {
      continue;
    }
    exchange.call.reset();  // not from inside its own callback: valves are set from elsewhere
    exchange.gated = false;
    AnswerFault(exchange,
                sqs::MakeFault(exchange.protocol, sqs::FaultKind::kUnavailable,
                               SqsCutText(Speaker(exchange))),
                "cut");
  }
}

}  // namespace leasehold::gate
