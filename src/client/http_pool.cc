#include "client/http_pool.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "client/http_connection.h"
#include "client/http_exchange.h"
#include "loop/timer.h"

namespace leasehold::client {
namespace {

using base::Error;
using base::ErrorCode;
using base::MonoTime;

}  // namespace

struct HttpPool::Impl final : HttpConnection::Keeper {
  class Call;
  struct Idle {
    std::unique_ptr<HttpConnection> connection;
    MonoTime until;
  };

  Impl(loop::Loop& the_loop, HttpPoolOptions the_options)
      : loop(the_loop), options(std::move(the_options)), idle_timer(loop, [this] { Sweep(); }) {}
  ~Impl() override;

  void Add(Call& call);
  void Remove(Call& call);
  // The one that was used last; nullptr: none is left that may still be open.
  std::unique_ptr<HttpConnection> TakeIdle();
  void Keep(std::unique_ptr<HttpConnection> connection);
  void DropIdle() { idle.clear(); }
  void OnIdleOver(HttpConnection& connection) override;
  void Sweep();

  loop::Loop& loop;
  const HttpPoolOptions options;
  std::vector<Call*> calls;  // those that are not over
  std::vector<Idle> idle;    // in the order they became it
  size_t busy = 0;           // connections of calls, also those being made
  uint64_t connects = 0;
  loop::Timer idle_timer;
};

class HttpPool::Impl::Call final : public HttpCall, private HttpConnection::User {
 public:
  Call(Impl& pool, HttpRequest request, bool idempotent,
       std::function<void(base::Result<HttpResponse>)> done)
      : pool_(&pool),
        name_(CallName(request, pool.options.address)),
        idempotent_(idempotent),
        request_(std::move(request)),
        done_(std::move(done)),
        end_(request_.started.value_or(loop::Loop::Now()) + request_.timeout),
        deadline_(pool.loop, [this] { OnDeadline(); }) {
    pool_->Add(*this);
    Begin();
  }
  ~Call() override {
    if (pool_ != nullptr) LeavePool();
  }

  // The pool is going: nothing more happens.
  void Orphan() {
    deadline_.Stop();
    LeavePool();
    done_ = nullptr;
  }

  size_t slot = 0;  // in the pool's calls

 private:
  void Begin();
  void Refuse(Error why);
  void Connect();
  void OnConnected(base::Result<std::unique_ptr<loop::Stream>> stream);
  void Use(std::unique_ptr<HttpConnection> connection);
  void OnAnswer(HttpResponse response) override;
  void OnFailure(Error why) override;
  void OnDeadline();
  void LeavePool();
  void Fail(ErrorCode code, const std::string& why) { Finish(Error{code, name_ + ": " + why}); }
  void Finish(base::Result<HttpResponse> result);

  Impl* pool_;              // nullptr: over
  const std::string name_;  // for errors
  const bool idempotent_;
  HttpRequest request_;
  std::string head_;
  std::function<void(base::Result<HttpResponse>)> done_;
  const MonoTime end_;
  bool holds_place_ = false;      // counted among the pool's busy connections
  bool kept_ = false;             // the connection served others before
  std::optional<Error> refused_;  // told by the timer, later
  loop::Timer deadline_;
  std::unique_ptr<loop::Connecting> connecting_;
  std::unique_ptr<HttpConnection> connection_;
};

void HttpPool::Impl::Call::Begin() {
  if (base::Status status = CheckRequest(request_); !status) return Refuse(status.error());
  const MonoTime now = loop::Loop::Now();
  if (now >= end_) {
    return Refuse({ErrorCode::kTimeout, "no time was left to send the request in"});
  }
  std::unique_ptr<HttpConnection> kept = pool_->TakeIdle();
  if (!kept && pool_->busy >= pool_->options.connections_max) {
    return Refuse({ErrorCode::kLimit, "all " + std::to_string(pool_->options.connections_max) +
                                          " connections are in use; this limits how many calls "
                                          "may be out at a time"});
  }
  ++pool_->busy;
  holds_place_ = true;
  deadline_.StartAt(end_);
  head_ = WriteHead(request_, pool_->options.address, true);
  if (!kept) return Connect();
  kept_ = true;
  Use(std::move(kept));
}

void HttpPool::Impl::Call::Refuse(Error why) {
  refused_ = std::move(why);
  deadline_.StartAfter(base::Duration::Zero());
}

void HttpPool::Impl::Call::Connect() {
  loop::ConnectOptions how;
  how.timeout = base::Min(pool_->options.connect_timeout, end_ - loop::Loop::Now());
  how.tls = pool_->options.tls ? &*pool_->options.tls : nullptr;
  connecting_ = loop::Connect(pool_->loop, pool_->options.address, how,
                              [this](base::Result<std::unique_ptr<loop::Stream>> stream) {
                                OnConnected(std::move(stream));
                              });
}

void HttpPool::Impl::Call::OnConnected(base::Result<std::unique_ptr<loop::Stream>> stream) {
  connecting_.reset();
  if (!stream) {
    const bool late = stream.error().code == ErrorCode::kTimeout;
    return Fail(late ? ErrorCode::kTimeout : ErrorCode::kUnavailable, stream.error().message);
  }
  ++pool_->connects;
  Use(std::make_unique<HttpConnection>(std::move(*stream), *pool_));
}

void HttpPool::Impl::Call::Use(std::unique_ptr<HttpConnection> connection) {
  connection_ = std::move(connection);
  connection_->Send(head_, request_, *this);
}

void HttpPool::Impl::Call::OnAnswer(HttpResponse response) {
  if (connection_->reusable()) {
    // Before `done`: what it asks next may use it.
    --pool_->busy;
    holds_place_ = false;
    pool_->Keep(std::move(connection_));
  }
  Finish(std::move(response));
}

void HttpPool::Impl::Call::OnFailure(Error why) {
  const bool stale = kept_ && connection_->untouched();
  connection_.reset();
  if (stale && idempotent_) {
    kept_ = false;  // so this happens once
    return Connect();
  }
  Fail(why.code, why.message);
}

void HttpPool::Impl::Call::OnDeadline() {
  if (refused_) return Fail(refused_->code, refused_->message);
  const std::string within = " within " + base::FormatDuration(request_.timeout);
  if (!connection_) return Fail(ErrorCode::kTimeout, "not connected" + within);
  if (!connection_->untouched()) return Fail(ErrorCode::kTimeout, "no complete answer" + within);
  // Whatever swallowed this one (a machine gone without a word, a forgotten address translation)
  // has perhaps swallowed the other kept ones, and each would cost a call its time.
  if (kept_) pool_->DropIdle();
  Fail(ErrorCode::kTimeout, "no answer" + within);
}

void HttpPool::Impl::Call::LeavePool() {
  connecting_.reset();
  connection_.reset();
  if (std::exchange(holds_place_, false)) --pool_->busy;
  pool_->Remove(*this);
  pool_ = nullptr;
}

// The last thing a call does: `done` may destroy it, and the pool.
void HttpPool::Impl::Call::Finish(base::Result<HttpResponse> result) {
  deadline_.Stop();
  LeavePool();
  request_.body = {};
  const auto done = std::move(done_);
  done(std::move(result));
}

HttpPool::Impl::~Impl() {
  while (!calls.empty()) calls.back()->Orphan();
}

void HttpPool::Impl::Add(Call& call) {
  call.slot = calls.size();
  calls.push_back(&call);
}

void HttpPool::Impl::Remove(Call& call) {
  CHECK(call.slot < calls.size() && calls[call.slot] == &call, "a call is in its pool's table");
  calls[call.slot] = calls.back();
  calls[call.slot]->slot = call.slot;
  calls.pop_back();
}

// A connection that outlived its time while the process stood still, or on which something waits to
// be read, is as good as closed.
std::unique_ptr<HttpConnection> HttpPool::Impl::TakeIdle() {
  const MonoTime now = loop::Loop::Now();
  while (!idle.empty()) {
    Idle last = std::move(idle.back());
    idle.pop_back();
    if (now < last.until && last.connection->Quiet()) return std::move(last.connection);
  }
  return nullptr;
}

void HttpPool::Impl::Keep(std::unique_ptr<HttpConnection> connection) {
  if (options.idle_max == 0) return;
  if (idle.size() >= options.idle_max) idle.erase(idle.begin());
  idle.push_back({std::move(connection), loop::Loop::Now() + options.idle_timeout});
  if (!idle_timer.armed()) idle_timer.StartAt(idle.front().until);
}

void HttpPool::Impl::OnIdleOver(HttpConnection& connection) {
  const auto found = std::find_if(idle.begin(), idle.end(), [&connection](const Idle& one) {
    return one.connection.get() == &connection;
  });
  CHECK(found != idle.end(), "an idle connection is in its pool's table");
  idle.erase(found);
}

void HttpPool::Impl::Sweep() {
  const MonoTime now = loop::Loop::Now();
  const auto first_kept =
      std::find_if(idle.begin(), idle.end(), [now](const Idle& one) { return one.until > now; });
  idle.erase(idle.begin(), first_kept);
  if (!idle.empty()) idle_timer.StartAt(idle.front().until);
}

HttpPool::HttpPool(loop::Loop& loop, HttpPoolOptions options)
    : impl_(std::make_unique<Impl>(loop, std::move(options))) {}

HttpPool::~HttpPool() = default;

std::unique_ptr<HttpCall> HttpPool::Start(HttpRequest request, bool idempotent,
                                          std::function<void(base::Result<HttpResponse>)> done) {
  return std::make_unique<Impl::Call>(*impl_, std::move(request), idempotent, std::move(done));
}

size_t HttpPool::connections() const { return impl_->busy + impl_->idle.size(); }
size_t HttpPool::idle() const { return impl_->idle.size(); }
uint64_t HttpPool::connects() const { return impl_->connects; }

}  // namespace leasehold::client
