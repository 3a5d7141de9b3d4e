// Downstream: one client connection of an http gate, with the one exchange it has under way:
// requests are answered in order, so the next one is parsed only when the last byte of the answer
// before it is with the kernel. Owned by its HttpGate. http_downstream.cc: the connection and the
// client's side; http_exchange.cc: the application's side; http_answers.cc: answers the gate gives
// by itself. Invariants: an admitted request has a Ticket until its answer is with the kernel or it
// is cut; a request that the application may have seen is sent again only if it is idempotent,
// nothing of its body went out and a reused connection ended before one byte of the answer; an
// answer is never ended in order unless it is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "gate/gate_core.h"
#include "gate/http_upstream.h"
#include "loop/connect.h"
#include "loop/stream.h"
#include "proto/http1.h"

namespace leasehold::gate {

class HttpGate;
class Outgoing;

class Downstream final : public loop::StreamListener, public HoldEntry, private UpstreamUser {
 public:
  Downstream(HttpGate& gate, std::unique_ptr<loop::Stream> stream);
  ~Downstream() override;

  void Start();
  // Over max_connections: says so and closes.
  void RefuseConnection();
  // A held request is admitted, or has waited in vain.
  void Serve(Ticket ticket);
  void RefuseHeld(Refusal reason);
  // The valve went to draining or closed. A connection between two requests is closed at once if
  // nothing came for a while, else told on its next answer. `cut`: what is in flight ends here.
  void OnShut(bool lost, bool cut);
  void OnSweep(base::MonoTime now);
  // The gate is being destroyed (the process ends): who got no byte of an answer, held ones too, is
  // refused; an answer under way is cut, so that it does not look complete.
  void EndWithGate();

 private:
  friend class HttpGate;

  // A connection that carried a request this recently belongs to a busy client: in a drain it is
  // told on its next answer rather than closed between two requests, which could cost it one.
  static constexpr base::Duration kHotWindow = base::Duration::Seconds(1);

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
  void RefuseExpired();
  void Stash(std::string_view rest);
  void ResumeInput();  // what was stashed
  void UpdateReading();
  void OnRequestHead();
  void OnRequestComplete();
  void OnInputPaused();  // everything there is was parsed
  void AddRequestHead(Outgoing& out);
  void AddRequestEnd(Outgoing& out);
  bool RequestHasBody() const;

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

  // ---- answers of our own, and ends (http_answers.cc) ----
  void AnswerRefusal(Refusal reason);
  void AnswerParseError();
  void Answer(int status, std::string_view type, std::string_view detail);
  bool RequestArrivedWhole();
  void Cut();    // both sides, with RST: what is out must not look complete
  void Close();  // the client's side in order; the upstream is dropped
  void BeginLinger();
  void SetDeadline(base::Duration d);
  void OnDeadline();
  void OnStalled();
  void OnActiveDeadline();
  std::string_view lease_state() const;

  HttpGate& gate_;
  std::unique_ptr<loop::Stream> stream_;
  proto::http1::RequestParser parser_;
  const std::string client_;  // address without port

  State state_ = State::kIdle;
  bool has_head_ = false;           // the request's head is complete and right
  bool in_input_ = false;           // HandleInput is on the stack
  bool client_ended_ = false;       // the client has sent its last byte
  bool head_timed_ = false;         // the head being read has its deadline
  bool head_due_ = false;           // the request head has not been sent on
  bool request_done_ = false;       // all of the request has been parsed and sent on
  bool body_begun_ = false;         // something of the body, or its end, went to the application
  bool awaiting_continue_ = false;  // Expect: 100-continue, and no answer yet
  bool upgrade_ = false;            // this request asks for an upgrade that we let through
  bool retried_ = false;
  bool interim_ = false;       // the head in the response parser is a 1xx
  bool answer_begun_ = false;  // bytes of the final answer went to the client
  bool chunk_answer_ = false;  // the answer's body goes to the client in chunks
  bool close_after_ = false;   // Connection: close was said
  bool counted_ = false;       // the answer is counted
  int status_ = 0;
  uint64_t sequence_ = 0;
  size_t stalled_bytes_ = 0;  // queued toward the client when the deadline was set
  size_t linger_bytes_ = 0;
  base::MonoTime deadline_ = base::MonoTime::Never();
  base::MonoTime started_;      // when the head was complete
  base::MonoTime last_active_;  // when the last answer was done
  Ticket ticket_;
  Upstream* upstream_ = nullptr;
  std::unique_ptr<loop::Connecting> connecting_;
  std::string pending_;  // bytes that arrived before their turn
  size_t index_ = 0;     // in the gate's table
};

}  // namespace leasehold::gate
