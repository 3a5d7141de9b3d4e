// HttpConnection: one kept connection of an HttpPool (http_pool.cc): sends a request, a big body
// piece by piece as the kernel takes it, and reads its answer; between calls it listens, so that a
// connection that the service closes, or on which it says something unasked, is known to be of no
// use. Owned by the call that uses it, or by the pool while it is idle. No deadlines and no
// retries: those are the call's. Invariants: a user is told once for each Send; nothing of this
// object is touched after a user or keeper was told, so that it may be destroyed then.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "client/http_call.h"
#include "client/http_exchange.h"
#include "loop/stream.h"

namespace leasehold::client {

class HttpConnection final : private loop::StreamListener {
 public:
  class User {
   public:
    virtual ~User() = default;
    // reusable() says whether the connection may be kept; else only destruction remains.
    virtual void OnAnswer(HttpResponse response) = 0;
    // Only destruction remains. The message does not name the call.
    virtual void OnFailure(base::Error why) = 0;
  };
  class Keeper {
   public:
    virtual ~Keeper() = default;
    // An idle one is of no use any more.
    virtual void OnIdleOver(HttpConnection& connection) = 0;
  };

  // `stream` is connected, and nobody has read of it. `keeper` outlives the idle connection.
  HttpConnection(std::unique_ptr<loop::Stream> stream, Keeper& keeper);

  // While idle. `head` as WriteHead gives it; `request` (its body is sent) stays as it is, and
  // `user` alive, until the user was told or this object is destroyed.
  void Send(std::string_view head, const HttpRequest& request, User& user);

  bool reusable() const { return reusable_; }
  // Not a byte of an answer to the last Send has come.
  bool untouched() const { return untouched_; }
  // While idle: nothing has come either that the loop has not told us yet.
  bool Quiet() const { return stream_->Quiet(); }

 private:
  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  void OnDrained() override { SendMore(); }
  void OnClosed(const base::Error& error) override;

  void SendMore();
  void Answer(bool in_order);
  void Fail(base::Error why);

  Keeper& keeper_;
  User* user_ = nullptr;     // nullptr: idle, or told
  std::string_view unsent_;  // of the body
  bool reusable_ = false;
  bool untouched_ = true;
  AnswerReader reader_;
  std::unique_ptr<loop::Stream> stream_;
};

}  // namespace leasehold::client
