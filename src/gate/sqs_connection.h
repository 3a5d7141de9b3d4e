// SqsConnection: one connection of the application's SDK to an sqs gate: plain HTTP/1.1 with whole,
// bounded bodies, one request under way at a time; what is pipelined behind it waits its turn, so
// that answers keep their order. Owned by its gate, which answers. Not here: what a request means.
//
// Invariants: OnRequest is answered by one Answer(), at once or later, unless the connection
// closed (OnClosing) first; a client that leaves is noticed while its request is being answered; no
// time-out has a timer of its own (OnSweep).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "gate/options.h"
#include "gate/sqs_in_flight.h"
#include "loop/loop.h"
#include "loop/stream.h"
#include "proto/http1.h"
#include "proto/sqs_fault.h"

namespace leasehold::gate {

class SqsConnection;
struct SqsExchange;

// What the connections of a gate share, and whom they ask.
class SqsServer {
 public:
  virtual ~SqsServer() = default;
  // A whole request: head() and TakeBody().
  virtual void OnRequest(SqsConnection& connection) = 0;
  // One that is no HTTP, too large or too slow. Answered with `close`.
  virtual void OnBadRequest(SqsConnection& connection, int status, std::string_view message) = 0;
  // The client has sent its last byte while its request is being answered: has it left? (A client
  // that only closed its sending half cannot be told apart.)
  virtual bool LeftBy(SqsConnection& connection) = 0;
  // May what waits of a gated answer still be sent?
  virtual bool MayFlush() = 0;
  // The memory of all bodies together: false if there is no room for so many bytes more.
  virtual bool TakeRoom(size_t bytes) = 0;
  virtual void GiveRoom(size_t bytes) = 0;
  // It is over: `answered` says whether all of the last answer went out. To be destroyed later.
  virtual void OnClosing(SqsConnection& connection, bool answered) = 0;
  virtual void CountBytes(size_t from_client, size_t to_client) = 0;
};

class SqsConnection final : public loop::StreamListener {
 public:
  SqsConnection(SqsServer& server, loop::Loop& loop, const Options& options,
                std::unique_ptr<loop::Stream> stream);
  ~SqsConnection() override = default;

  void Start();
  // Of the request under way.
  const proto::http1::RequestHead& head() const { return parser_.head(); }
  bool has_head() const { return has_head_; }
  std::string TakeBody() { return std::move(body_); }
  // `gated`: it must not outlive the permit. `close`: the connection ends behind it.
  void Answer(const proto::sqs::Answer& answer, bool gated, bool close = false);
  void OnSweep(base::MonoTime now);
  // The permit is over: an answer that came under it and is not out yet is cut.
  void OnShut() {
    if (state_ == State::kFlushing && gated_) Cut();
  }
  // The process is going away: between two requests it is closed, else behind its answer.
  void EndAfterAnswer();
  void Cut();  // with RST: what is out must not look complete
  void Close();

  SqsExchange* exchange = nullptr;  // the gate's: what is being answered
  size_t index = 0;                 // the gate's: in its table
  // The gate's: messages of the answer that is on its way to the client, until all of it is out.
  std::vector<SqsInFlight::Place> delivering;
  std::string delivering_url;

 private:
  enum class State : uint8_t {
    kReading,    // between requests, or reading one
    kAnswering,  // the request is the gate's
    kFlushing,   // the answer waits for the client to take it
    kLingering,  // the last answer is out; what the client still sends is thrown away
    kClosed,
  };

  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  bool MayFlush() override;
  void OnDrained() override;
  void OnClosed(const base::Error& error) override;

  void HandleInput(std::string_view input);
  void ResumeInput();
  void OnHead();
  void OnBody(std::string_view piece);
  void OnComplete();
  void OnPaused();
  void UpdateReading();
  void AnswerSent();
  void BeginLinger();
  void ReleaseRoom();
  void Bad(int status, std::string_view message);
  void SetDeadline(base::Duration d) { deadline_ = loop_.CachedNow() + d; }

  SqsServer& server_;
  loop::Loop& loop_;
  const Options& options_;
  std::unique_ptr<loop::Stream> stream_;
  proto::http1::RequestParser parser_;

  State state_ = State::kReading;
  std::string body_;
  std::string pending_;  // bytes that arrived before their turn
  size_t room_ = 0;      // taken for the request under way
  bool has_head_ = false;
  bool head_timed_ = false;
  bool in_input_ = false;
  bool client_ended_ = false;
  bool end_after_answer_ = false;
  bool close_after_ = false;
  bool gated_ = false;
  size_t stalled_bytes_ = 0;  // queued toward the client when the deadline was set
  size_t linger_bytes_ = 0;
  base::MonoTime deadline_ = base::MonoTime::Never();
};

}  // namespace leasehold::gate
