// What comes from other sidecars, at the peer listener: who may speak there, and the signs that
// tell a sender that its request is in good hands. Everything else is as for clients: the exchange
// of http_exchange.cc, except that what is not admitted is neither held nor forwarded.
#include "gate/http_downstream.h"
#include "gate/http_gate.h"
#include "gate/peer_hello.h"

namespace leasehold::gate {
namespace {

// A third of what a sender waits for a sign of life (HttpGate::kPeerPatience): two may come late.
constexpr base::Duration kSignInterval = base::Duration::Seconds(1);
constexpr std::string_view kAdmission = "HTTP/1.1 199 Admitted\r\nLease-Peer: admitted\r\n\r\n";

}  // namespace

void Downstream::OnPeerRequest() {
  const proto::http1::RequestHead& head = parser_.head();
  bool say = false;
  const PeerCheck check =
      head.lease_peers == 1 ? gate_.peer_key_.Check(head.lease_peer, &say) : PeerCheck::kMalformed;
  if (check != PeerCheck::kWelcome) return RefusePeer(check);
  const Decision decision = gate_.AdmitFromPeer(ticket_);
  if (decision.verdict != Verdict::kAdmit) return AnswerNotAdmitted(decision.refusal);
  // (With Expect: 100-continue it is the application that asks for the body: it must have the head.
  // A body that it never got, it cannot have acted on.)
  exchange_.commit_due = say && RequestHasBody() && !exchange_.awaiting_continue;
  if (say) {
    SayAdmitted();
  } else {
    exchange_.sign_at = gate_.host().loop.CachedNow() + kSignInterval;
  }
  StartExchange();
}

// Said again and again until the answer begins: a frozen or dead process says nothing, a slow
// application is told apart.
void Downstream::SayAdmitted() {
  if (state_ == State::kClosed || !ticket_.admitted() || exchange_.answer_begun) return;
  exchange_.sign_at = gate_.host().loop.CachedNow() + kSignInterval;
  if (stream_->queued() > 0) return;  // it has enough to read
  gate_.bytes_down_ += kAdmission.size();
  stream_->Write(kAdmission);
}

void Downstream::RefusePeer(PeerCheck check) {
  if (check == PeerCheck::kOtherProcess) {
    gate_.core().CountRefusal(Refusal::kClosed);
    return AnswerNotAdmitted(Refusal::kClosed);
  }
  gate_.NotePeerRefused(stream_->peer(), PeerCheckSentence(check));
  Answer(403, "peer_refused", PeerCheckSentence(check), kPeerRefused);
}

// At listen: only a sidecar that was told a wrong address sends this here, or somebody who plays
// one. To serve or forward it could go round for ever.
void Downstream::RefuseLoop() {
  constexpr std::string_view kSentence =
      "a sidecar forwarded to listen; advertise must name peer_listen";
  gate_.NotePeerRefused(stream_->peer(), kSentence);
  Answer(508, "loop_detected", kSentence, kPeerRefused);
}

}  // namespace leasehold::gate
