// What an sqs gate says of itself: words for its answers, metrics, log lines.
#include <array>
#include <utility>

#include "crypto/digest.h"
#include "gate/sqs_machine.h"
#include "lease/events.h"

namespace leasehold::gate {

namespace sqs = proto::sqs;
using loop::Loop;

// ---- words and numbers ----

SqsSpeaker SqsGate::Speaker(const SqsExchange& exchange) const {
  SqsSpeaker speaker;
  speaker.lease = host().lease;
  speaker.state = host().lease_state ? host().lease_state()
                                     : std::string_view(lease::ValveName(core().valve()));
  speaker.action = sqs::ActionName(exchange.action);
  if (speaker.action.empty()) speaker.action = "the request";
  return speaker;
}

// As SQS makes them: a UUID.
std::string SqsGate::RequestId() {
  const uint64_t high = random_.Next();
  const uint64_t low = random_.Next();
  std::array<uint8_t, 16> bytes{};
  for (size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<uint8_t>(high >> (8 * i));
    bytes[8 + i] = static_cast<uint8_t>(low >> (8 * i));
  }
  std::string id = crypto::Hex(bytes);
  for (const size_t at : {size_t{20}, size_t{16}, size_t{12}, size_t{8}}) id.insert(at, 1, '-');
  return id;
}

observe::Labels SqsGate::Labels() const {
  return {{"gate", options().name}, {"lease", host().lease}};
}

void SqsGate::CountRequest(const SqsExchange& exchange, std::string_view result) {
  observe::Labels labels = Labels();
  const std::string_view action = sqs::ActionName(exchange.action);
  labels["action"] = action.empty() ? "unknown" : action;
  labels["result"] = result;
  host()
      .metrics
      .AddCounter("leasehold_gate_sqs_requests_total",
                  "Requests of the application to an sqs gate, by action and what became of them.",
                  labels)
      .Add();
}

void SqsGate::CountRefused(std::string_view reason) {
  observe::Labels labels = Labels();
  labels["reason"] = reason;
  host()
      .metrics
      .AddCounter("leasehold_gate_sqs_refused_total",
                  "What an sqs gate refused for another reason than the lease's state.", labels)
      .Add();
}

void SqsGate::NoteTrouble(std::string_view event, std::string_view message,
                          std::string_view error) {
  uint64_t suppressed = 0;
  if (!trouble_limit_.Allow(Loop::Now(), &suppressed)) return;
  host().log.Warn(event, message,
                  {{"gate", options().name},
                   {"upstream", service_.endpoint().ToString()},
                   {"error", error},
                   {"suppressed", suppressed}});
}

void SqsGate::CollectSqs(observe::Samples& samples) const {
  samples.Gauge("leasehold_gate_sqs_polls", "Receives that wait, here or with SQS.", Labels(),
                static_cast<double>(polls_));
  samples.Gauge("leasehold_gate_sqs_messages_in_flight",
                "Messages that the application received and has not finished.", Labels(),
                static_cast<double>(in_flight_.size()));
  samples.Gauge("leasehold_gate_sqs_former_handles",
                "Receipt handles of ended terms, refused until their visibility time-out.",
                Labels(), static_cast<double>(in_flight_.former()));
}

}  // namespace leasehold::gate
