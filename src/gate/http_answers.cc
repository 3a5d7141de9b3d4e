// Answers the gate gives by itself.
#include <utility>

#include "gate/http_downstream.h"
#include "gate/http_gate.h"
#include "gate/http_problem.h"
#include "gate/peer_hello.h"

namespace leasehold::gate {
namespace {

struct RefusalText {
  std::string_view type;
  std::string_view detail;
};

RefusalText TextOf(Refusal reason) {
  switch (reason) {
    case Refusal::kClosed: return {"not_holding", "The lease is not held here."};
    case Refusal::kDraining:
      return {"draining", "The holder is stepping down and admits nothing new."};
    case Refusal::kExpired: return {"expired", "The lease ran out; it is being looked for again."};
    case Refusal::kHoldFull:
      return {"hold_full", "As many requests as allowed are waiting for the lease already."};
    case Refusal::kHoldTimeout: return {"hold_timeout", "The lease did not come in time."};
    case Refusal::kMaxConnections:
      return {"max_connections", "As many connections as allowed are open already."};
    case Refusal::kLeaving:
      return {"leaving", "This instance is going away, and no other took the lease in time."};
  }
  return {"refused", "The request was refused."};
}

std::string_view ParseErrorType(int status) {
  switch (status) {
    case 413: return "body_too_large";
    case 414: return "target_too_long";
    case 417: return "expectation_failed";
    case 431: return "head_too_large";
    case 501: return "not_implemented";
    case 505: return "version_not_supported";
    default: return "bad_request";
  }
}

}  // namespace

std::string_view Downstream::lease_state() const {
  if (gate_.host().lease_state) return gate_.host().lease_state();
  return gate_.open() ? "active" : "standby";
}

void Downstream::AnswerRefusal(Refusal reason) {
  RefusalText text = TextOf(reason);
  // Whoever waited in vain at a gate that forwards may have waited for another instance.
  if (reason == Refusal::kHoldTimeout && gate_.options().forwards() &&
      gate_.core().valve() == lease::Valve::kClosed) {
    text.detail =
        gate_.core().route().known()
            ? "The holder's gate did not take it in time, and the lease did not come here."
            : "The lease did not come in time, and its record names no holder's gate to "
              "forward to.";
  }
  Answer(503, text.type, text.detail);
}

void Downstream::AnswerParseError() {
  const proto::http1::ParseError error = parser_.error();
  if (exchange_.answer_begun) return Cut();
  Answer(error.status, ParseErrorType(error.status), error.message);
}

// The permit was over before the request, though admitted, was sent (then it is refused), or while
// it is being sent (then both sides are cut).
void Downstream::RefuseExpired() {
  if (!exchange_.head_due || exchange_.retried) return Cut();
  gate_.core().CountRefusal(Refusal::kExpired);
  RefuseUnsent(Refusal::kExpired);
}

void Downstream::RefuseUnsent(Refusal reason) {
  if (from_peer_) return AnswerNotAdmitted(reason);
  if (gate_.options().forwards()) return RouteAgain();
  AnswerRefusal(reason);
}

// On the head alone, or before it went on: the sender may do with the request what it likes.
void Downstream::AnswerNotAdmitted(Refusal reason) {
  const RefusalText text = TextOf(reason);
  Answer(503, text.type, text.detail, kPeerNotAdmitted);
}

bool Downstream::RequestArrivedWhole() {
  if (!exchange_.has_head) return false;
  if (!exchange_.request_done && !RequestHasBody()) {
    exchange_.request_done = parser_.Next({}).event == proto::http1::Event::kComplete;
  }
  return exchange_.request_done;
}

void Downstream::Answer(int status, std::string_view type, std::string_view detail,
                        std::string_view peer_mark) {
  const bool whole = RequestArrivedWhole();
  LeaveQueue();
  connecting_.reset();
  LeaveUpstream(false);
  EndForward();
  exchange_.sign_at = base::MonoTime::Never();
  // Whoever is refused should connect anew, which may lead to the holder; after a failure of the
  // application alone there is no better place. A sidecar knows by itself where to go.
  const bool stays = Stays() && (status != 503 || from_peer_);
  exchange_.close_after =
      !(whole && parser_.head().keep_alive && stays) || (client_ended_ && pending_.empty());
  Problem problem;
  problem.status = exchange_.status = status;
  problem.type = type;
  problem.detail = detail;
  problem.lease = gate_.host().lease;
  problem.state = lease_state();
  problem.close = exchange_.close_after;
  problem.peer_mark = from_peer_ && peer_mark.empty() ? kPeerAnswer : peer_mark;
  problem.head_only = exchange_.has_head && parser_.head().is_head;
  problem.keep_alive_10 =
      exchange_.has_head && parser_.head().version_minor == 0 && !exchange_.close_after;
  gate_.response_head_.clear();
  AppendProblem(gate_.response_head_, gate_.scratch_, problem);
  gate_.bytes_down_ += gate_.response_head_.size();
  stream_->Write(gate_.response_head_);
  exchange_.answer_begun = true;
  // Between two sidecars: its client has had no answer yet, least of all a 5xx. It is a refusal.
  if (peer_mark == kPeerNotAdmitted) exchange_.counted = true;
  if (!exchange_.has_head) exchange_.started = gate_.host().loop.CachedNow();
  AnswerSent();
}

void Downstream::RefuseConnection() { AnswerRefusal(Refusal::kMaxConnections); }

void Downstream::RefuseHeld(Refusal reason) { AnswerRefusal(reason); }

}  // namespace leasehold::gate
