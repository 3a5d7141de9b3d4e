// Downstream: one connection of a client, or of another sidecar that forwards, to an http gate,
// with the one exchange it has under way: requests are answered in order, so the next one is parsed
// only when the last byte of the answer before it is with the kernel. Owned by its HttpGate.
// http_downstream.cc: the connection and the client's side; http_exchange.cc: the application's
// side; http_answers.cc: answers the gate gives by itself; http_ends.cc: time-outs and ends;
// http_forward.cc: an exchange that goes to the holder's gate; http_peer.cc: one that came from
// another sidecar. Invariants: an admitted request has a Ticket until its answer is with the kernel
// or it is cut; a request that an application may have seen is sent again only if it is idempotent,
// nothing of its body went out and nothing of the answer came; an answer is never ended in order
// unless it is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "gate/gate_core.h"
#include "gate/http_exchange_state.h"
#include "gate/http_headers.h"
#include "gate/http_upstream.h"
#include "loop/connect.h"
#include "loop/stream.h"
#include "proto/http1.h"

namespace leasehold::gate {

class HttpGate;
class Outgoing;
enum class PeerCheck : uint8_t;

// Who connected: a client to listen, or another sidecar to peer_listen.
enum class Origin : uint8_t { kClient, kPeer };

class Downstream final : public loop::StreamListener, public HoldEntry, private UpstreamUser {
 public:
  Downstream(HttpGate& gate, std::unique_ptr<loop::Stream> stream, Origin origin);
  ~Downstream() override;

  void Start();
  // Over max_connections: says so and closes.
  void RefuseConnection();
  // A held request is admitted, goes to the holder's gate, or has waited in vain.
  void Serve(Ticket ticket);
  void Forward(bool probe);
  void RefuseHeld(Refusal reason);
  // The valve went to draining or closed. A connection between two requests is closed at once if
  // nothing came for a while, else told on its next answer. `cut`: what is in flight ends here.
  void OnShut(bool lost, bool cut);
  // The process is going away: the same for whoever is between two requests.
  void OnLeave();
  // `stalled`: the loop was, so that what others said may not have been heard yet.
  void OnSweep(base::MonoTime now, bool stalled);
  // The gate is being destroyed (the process ends): who got no byte of an answer, held ones too, is
  // refused; an answer under way is cut, so that it does not look complete.
  void EndWithGate();

 private:
  friend class HttpGate;

  // A connection that carried a request this recently belongs to a busy client: in a drain it is
  // told on its next answer rather than closed between two requests, which could cost it one.
  static constexpr base::Duration kHotWindow = base::Duration::Seconds(1);
  // How long a body is kept back for a "100 Continue" once the client has begun to send it without
  // one: RFC 9110 10.1.1 tells clients not to wait for ever, and curl waits one second.
  static constexpr base::Duration kContinueWait = base::Duration::Seconds(1);

  enum class State : uint8_t {
    kIdle,        // between requests, or reading a head
    kHeld,        // the head is complete; waiting for the gate to open
    kConnecting,  // admitted; a connection to the application is being made
    kActive,      // has its upstream; request and answer are under way
    kFlushing,    // the answer is complete, its last bytes wait for the client
    kLingering,   // the last answer is out; what the client still sends is thrown away
    kClosed,      // to be buried
  };

  // ---- loop::StreamListener: the client ----
  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  bool MayFlush() override;
  void OnDrained() override;
  void OnClosed(const base::Error& error) override;

  // ---- the request ----
  void HandleInput(std::string_view input);
  bool WantsInput() const;
  void RelayRequest(std::string_view& input);
  void Stash(std::string_view rest);
  void ResumeInput();  // what was stashed
  void UpdateReading();
  void OnRequestHead();
  void OnRequestComplete();
  void OnInputPaused();  // everything there is was parsed
  void StartRequest();   // forgets the one before
  void AddRequestHead(Outgoing& out, BodyRewrite body);
  void AddRequestEnd(Outgoing& out);
  bool RequestHasBody() const;
  // May bytes go either way between the two sides? What is forwarded needs no permit of ours.
  bool MayRelay();

  // ---- the application (http_exchange.cc) ----
  void StartExchange();
  void Connect();
  void OnConnected(base::Result<std::unique_ptr<loop::Stream>> result);
  void Attach(Upstream& upstream);
  void OnUpstreamData(std::string_view bytes) override;
  void OnUpstreamEnd() override;
  void OnUpstreamBroken() override;
  void OnUpstreamDrained() override;
  bool MaySendUpstream() override;
  bool OnResponseHead(Outgoing& out, std::string_view rest);
  bool RelayInterim(Outgoing& out);
  void RelayFinal(Outgoing& out);
  void FinishResponse(Outgoing& out, bool clean);
  void AfterResponseBytes();
  void UpstreamFailed(const char* what);
  bool MayRetry() const;
  void BeginTunnel(std::string_view rest);
  void AnswerSent();
  void FinishExchange();
  void LeaveUpstream(bool reset);

  // ---- the holder's gate (http_forward.cc) ----
  void StartForward(bool probe);
  void EndForward();
  void OnPeerConnected(base::Result<std::unique_ptr<loop::Stream>> result);
  bool OnPeerHead();       // false: this exchange does not go on here
  void OnPeerAdmission();  // said, by a 199 or an answer
  void PeerDidNotAdmit();
  void PeerFailed(const char* what);
  void ExpectSign();  // of life, from now on within a time
  void PeerSilent();
  void AnswerPeerRefused();
  void AnswerPeerFailed();
  void PeerTooLate();
  // Nothing of it was executed, or it may be executed twice: to whoever takes it, or held again.
  void RouteAgain();
  bool MayBeSentAgain() const;
  BodyRewrite Rewrite() const;

  // ---- another sidecar (http_peer.cc) ----
  void OnPeerRequest();
  void RefusePeer(PeerCheck check);
  void RefuseLoop();
  void SayAdmitted();

  // ---- answers of our own, and ends (http_answers.cc) ----
  void AnswerRefusal(Refusal reason);
  void RefuseUnsent(Refusal reason);  // nothing of it went to the application
  void AnswerNotAdmitted(Refusal reason);
  void RefuseExpired();
  void AnswerParseError();
  // `peer_mark`: to a sidecar, or to whoever sent Lease-Peer (peer_hello.h); "": as it is usual.
  void Answer(int status, std::string_view type, std::string_view detail,
              std::string_view peer_mark = {});
  bool RequestArrivedWhole();
  void Cut();    // both sides, with RST: what is out must not look complete
  void Close();  // the client's side in order; the upstream is dropped
  void BeginLinger();
  void CloseIdle(bool at_once);  // unless it is hot: then it is told on its next answer
  bool Stays() const;            // may another request follow?
  base::Duration IdleTimeout() const;
  base::Duration PeerIdleTimeout() const;
  void SetDeadline(base::Duration d);
  void OnDeadline();
  void OnStalled();
  void OnActiveDeadline();
  std::string_view lease_state() const;

  HttpGate& gate_;
  std::unique_ptr<loop::Stream> stream_;
  proto::http1::RequestParser parser_;
  const std::string client_;  // address without port
  const bool from_peer_;

  State state_ = State::kIdle;
  ExchangeState exchange_;
  bool in_input_ = false;      // HandleInput is on the stack
  bool client_ended_ = false;  // the client has sent its last byte
  bool head_timed_ = false;    // the head being read has its deadline
  size_t stalled_bytes_ = 0;   // queued toward the client when the deadline was set
  size_t linger_bytes_ = 0;
  base::MonoTime deadline_ = base::MonoTime::Never();
  base::MonoTime last_active_;  // when the last answer was done
  Ticket ticket_;
  Upstream* upstream_ = nullptr;
  std::unique_ptr<loop::Connecting> connecting_;
  std::string pending_;  // bytes that arrived before their turn
  size_t index_ = 0;     // in the gate's table
};

}  // namespace leasehold::gate
