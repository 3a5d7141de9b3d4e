// SqsExchange: one request of the application's SDK and what becomes of it, from the moment it was
// understood until it is answered by SQS. Owned by its gate, not by its connection: the client may
// leave, and what is with SQS goes on: a receive must not be cut (SQS would hand a message to
// nobody), and of a delete it must be known how it ended. Values only; the gate does the work
// (sqs_forward.cc, sqs_receive.cc).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aws/service.h"
#include "base/time.h"
#include "gate/gate_core.h"
#include "gate/hold_queue.h"
#include "gate/sqs_connection.h"
#include "gate/sqs_in_flight.h"
#include "proto/sqs.h"
#include "proto/sqs_answer.h"

namespace leasehold::gate {

struct SqsExchange final : public HoldEntry {
  enum class State : uint8_t {
    kNew,
    kHeld,     // waits for a renewal to be confirmed (never a receive)
    kWaiting,  // a receive that is not with SQS: it waits as if at an empty queue
    kCalling,  // with SQS
    kParked,   // a receive's messages have arrived while a renewal is being confirmed
    kOver,
  };

  // ---- of all ----
  State state = State::kNew;
  SqsConnection* client = nullptr;  // nullptr: it has left, or was answered already
  size_t index = 0;                 // in the gate's table
  proto::sqs::ClientRequest request;
  proto::sqs::Protocol protocol = proto::sqs::Protocol::kJson;
  proto::sqs::Action action = proto::sqs::Action::kUnknown;
  proto::sqs::Kind kind = proto::sqs::Kind::kUnknown;
  std::string queue;        // its path, by which it is known; "": none
  std::string queue_url;    // the service's
  std::string origin;       // what the client calls us: "http://127.0.0.1:9324"
  bool query_mode = false;  // X-Amzn-Query-Mode: wants errors' older names too
  bool gated = false;       // was admitted under the permit, and ends with it
  Ticket ticket;
  std::unique_ptr<aws::Call> call;
  base::MonoTime started;
  base::MonoTime sent;

  // ---- of acknowledgements ----
  std::vector<SqsInFlight::Place> places;  // of what was sent on, in the order of `sent_entries`
  std::vector<proto::sqs::Entry> sent_entries;
  std::vector<proto::sqs::EntryFailure> refused;  // of a batch, by us

  // ---- of receives ----
  base::MonoTime wait_until;
  bool wait_given = false;  // the client said how long; else the queue's own default
  bool full = false;        // max_in_flight is why it waits
  int asked_seconds = 0;    // of the call under way
  int asked_times = 0;
  size_t reserved = 0;                         // of max_in_flight
  std::string detached;                        // client == nullptr: why, for giving back
  std::optional<aws::Response> answer;         // kParked
  std::vector<proto::sqs::Received> received;  // kParked
};

}  // namespace leasehold::gate
