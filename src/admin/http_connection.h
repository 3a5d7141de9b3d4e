// HttpConnection: one client of the localhost API: reads requests, hands each to the handler,
// writes the answers in order. Not a proxy and not fast: whole small bodies, one request at a time
// (further pipelined ones wait in the kernel). A streamed answer is the connection's last: chunked,
// or, to HTTP/1.0, ended by the close; a client that sends its FIN or much else meanwhile has left.
// Owned by HttpServer. Invariants: every phase but "handling" and "streaming" (whose producer
// watches its reader) has a deadline; input, body and output are bounded; an answer to a request
// that is not the current one is dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "admin/http_message.h"
#include "base/time.h"
#include "loop/loop.h"
#include "loop/stream.h"
#include "loop/timer.h"
#include "proto/http1.h"

namespace leasehold::admin {

struct HttpServerOptions {
  uint32_t max_connections = 256;
  // Every request here is a few hundred bytes: 10 s is a thousand times what an honest client
  // needs.
  base::Duration head_timeout = base::Duration::Seconds(10);   // from its first byte: 408
  base::Duration body_timeout = base::Duration::Seconds(10);   // from the head: 408
  base::Duration write_timeout = base::Duration::Seconds(10);  // an answer nobody reads: reset
  base::Duration idle_timeout = base::Duration::Seconds(75);   // keep-alive; as nginx's default
  base::Duration linger_timeout = base::Duration::Seconds(2);  // for the peer's FIN after the last
  // Streamed bytes that a client's kernel neither acknowledges nor takes: it is dead, or stopped.
  base::Duration stream_user_timeout = base::Duration::Seconds(20);
  size_t head_bytes_max = 16 * 1024;
  size_t target_bytes_max = 2 * 1024;
  uint64_t body_bytes_max = 16 * 1024;  // the largest body known is under 300 bytes
};

class HttpConnection final : public loop::StreamListener,
                             public HttpSink,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  struct Owner {
    loop::Loop& loop;
    const HttpServerOptions& options;
    const HttpHandler& handler;
    std::function<void(HttpConnection&)> on_served;  // waits for its next request now
    std::function<void(HttpConnection&)> on_over;    // drop it; may be inside one of its calls
    std::function<void(HttpConnection&, bool on)> on_streaming;  // begins or ends to be a stream
  };
  HttpConnection(const Owner& owner, std::unique_ptr<loop::Stream> stream);
  ~HttpConnection() override;
  void Start();
  // True while no accepted request waits for its answer: may be closed to make room.
  bool expendable() const { return phase_ != Phase::kHandling && phase_ != Phase::kStreaming; }

  void WriteBody(std::string_view bytes) override;
  size_t queued() const override;
  void EndBody() override;
  void Cut() override;

  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  void OnDrained() override;
  void OnClosed(const base::Error& error) override;

 private:
  enum class Phase {
    kIdle,       // nothing of the next request has arrived
    kHead,       // some of its head has
    kBody,       // the head has, the body has not
    kHandling,   // the handler owes an answer
    kStreaming,  // the answer's body is being produced; what the client sends is thrown away
    kBlocked,    // answers wait to be read by the peer before more requests are looked at
    kLingering,  // the last answer is given; what still arrives is thrown away
    kOver,
  };
  void Enter(Phase phase);
  void Process();
  void ParseNext();
  void TakeHead();
  void Dispatch();
  void Answer(uint64_t exchange, const HttpAnswer& answer);
  void Write(const HttpAnswer& answer);
  void AfterAnswer();
  void BeginStream(const std::shared_ptr<HttpBodySource>& source);
  void EndSource();
  void Fail(int status, const char* why);
  void OnTimer();
  void Over();
  void Yield();
  void UpdateReading();

  const Owner& owner_;
  std::unique_ptr<loop::Stream> stream_;
  proto::http1::RequestParser parser_;
  loop::Timer timer_;
  Phase phase_ = Phase::kIdle;
  HttpRequest request_;
  std::shared_ptr<HttpBodySource> source_;  // while streaming
  std::string input_;
  uint64_t exchange_ = 0;  // number of the current request
  uint64_t discarded_bytes_ = 0;
  int served_in_turn_ = 0;  // requests since the loop last turned for others
  bool yielding_ = false;   // goes on with the next turn of the loop
  bool processing_ = false;
  bool starved_ = false;    // the parser asked for more
  bool ended_ = false;      // the peer has sent its last byte
  bool keep_alive_ = true;  // by the current request
  bool head_only_ = false;  // HEAD
  bool http_1_0_ = false;   // a streamed body is chunked unless it is
};

}  // namespace leasehold::admin
