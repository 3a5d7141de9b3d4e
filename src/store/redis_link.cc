#include "store/redis_link.h"

#include <fstream>
#include <utility>

#include "base/text.h"
#include "loop/lifetime.h"

namespace leasehold::store {
namespace {

using base::Duration;
using base::Result;

constexpr size_t kPasswordBytesMax = 4096;  // tokens of managed services reach 2 KiB
constexpr int kBackoffDoublingsMax = 16;    // keeps the shift small; backoff_max is reached earlier

std::string Command(std::initializer_list<std::string_view> arguments) {
  const std::vector<std::string_view> list(arguments);
  return proto::FormatRespCommand(list);
}

// Runs on a worker: a slow disk never stalls the gates. One line end is cut off: editors add it.
Result<std::string> ReadPasswordFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return base::Error{base::ErrorCode::kInvalid, "redis.password_file = \"" + path +
                                                      "\" cannot be opened; it must be a file this "
                                                      "process may read"};
  }
  std::string password(kPasswordBytesMax + 1, '\0');
  file.read(password.data(), static_cast<std::streamsize>(password.size()));
  password.resize(static_cast<size_t>(file.gcount()));
  if (password.ends_with('\n')) password.pop_back();
  if (password.ends_with('\r')) password.pop_back();
  if (password.empty() || password.size() > kPasswordBytesMax) {
    return base::Error{base::ErrorCode::kInvalid, "redis.password_file = \"" + path +
                                                      "\" must hold one line of 1 to 4096 bytes"};
  }
  return password;
}

}  // namespace

RedisLink::RedisLink(loop::Loop& loop, const RedisTarget& target, const RedisTuning& tuning,
                     std::vector<std::string> greeting, RedisLinkUser& user)
    : loop_(loop),
      target_(target),
      tuning_(tuning),
      greeting_(std::move(greeting)),
      user_(user),
      random_(loop::Loop::Entropy()),
      timer_(loop, [this] { OnTimer(); }) {}

RedisLink::~RedisLink() { loop::CallGuard::MarkGone(gone_); }

void RedisLink::Start() {
  CHECK(state_ == State::kStopped, "a RedisLink is started once");
  Attempt();
}

void RedisLink::Stop() {
  CloseStream();
  timer_.Stop();
  state_ = State::kStopped;
}

void RedisLink::Send(std::string_view bytes) {
  CHECK(state_ == State::kUp, "Send needs a connection that is up");
  stream_->Write(bytes);
}

size_t RedisLink::queued() const { return stream_ == nullptr ? 0 : stream_->queued(); }

void RedisLink::Drop(Duration pause) { CloseAndPlan(pause); }

// ---- connecting ----

void RedisLink::Attempt() {
  state_ = State::kOpening;
  timer_.StartAfter(tuning_.connect_timeout);
  if (target_.password_file.empty()) return Connect(target_.password);
  auto password = std::make_shared<Result<std::string>>(std::string());
  loop_.Work([path = target_.password_file, password] { *password = ReadPasswordFile(path); },
             [this, password, session = session_, alive = std::weak_ptr<char>(alive_)] {
               if (alive.expired() || session != session_) return;
               if (!*password) return Fail(ConnectFailure(target_.name, password->error()));
               Connect(**password);
             });
}

void RedisLink::Connect(const std::string& password) {
  loop::ConnectOptions options;
  options.timeout = tuning_.connect_timeout;
  options.tls = target_.tls ? &target_.tls_options : nullptr;
  connecting_ = loop::Connect(loop_, target_.address, options,
                              [this, password](Result<std::unique_ptr<loop::Stream>> result) {
                                OnConnected(std::move(result), password);
                              });
}

// Everything of the greeting goes out at once: what follows a refused AUTH or SELECT is harmless,
// because the greeting changes nothing and a refused step closes the connection.
void RedisLink::OnConnected(Result<std::unique_ptr<loop::Stream>> result,
                            const std::string& password) {
  connecting_.reset();
  if (!result) return Fail(ConnectFailure(target_.name, result.error()));
  stream_ = std::move(*result);
  reader_ = std::make_unique<proto::RespReader>(tuning_.reply_limits);
  stream_->SetListener(this);
  stream_->SetUserTimeout(tuning_.command_timeout);
  own_steps_.clear();
  greeted_ = 0;
  std::string bytes;
  if (!password.empty()) {
    own_steps_.emplace_back("AUTH");
    bytes += target_.user.empty() ? Command({"AUTH", password})
                                  : Command({"AUTH", target_.user, password});
  }
  if (target_.database != 0) {
    own_steps_.emplace_back("SELECT");
    bytes += Command({"SELECT", std::to_string(target_.database)});
  }
  for (const std::string& command : greeting_) bytes += command;
  state_ = State::kGreeting;
  stream_->StartReading();
  if (bytes.empty()) return GoUp();
  stream_->Write(bytes);
}

void RedisLink::OnTimer() {
  if (state_ == State::kWaiting) return Attempt();
  Fail(AmbiguousFailure(target_.name +
                        " did not answer the connect within redis.connect_timeout = " +
                        base::FormatDuration(tuning_.connect_timeout)));
}

std::optional<RedisFailure> RedisLink::Greeted(const proto::Reply& reply) {
  const size_t index = greeted_++;
  if (index >= own_steps_.size()) return user_.OnGreeting(index - own_steps_.size(), reply);
  if (!reply.is_error()) return std::nullopt;
  RedisFailure failure = ClassifyRedisError(target_.name, reply.text());
  // AUTH and SELECT fail with a plain ERR for a server without a password, a wrong password before
  // Redis 6, and a database number out of range: none of them passes by itself.
  if (failure.code == "ERR" && !reply.text().starts_with("ERR max number of clients")) {
    failure.kind = RedisFailure::Kind::kRefused;
    failure.sentence += own_steps_[index] == "AUTH"
                            ? ": correct redis.username, redis.password or redis.password_file"
                            : ": correct the database number at the end of redis.url";
  }
  return failure;
}

void RedisLink::GoUp() {
  state_ = State::kUp;
  timer_.Stop();
  up_since_ = loop::Loop::Now();
  user_.OnUp();
}

// ---- the stream ----

void RedisLink::OnData(std::span<const char> bytes) {
  if (const base::Status fed = reader_->Feed(bytes); !fed) {
    return Fail(AmbiguousFailure(target_.name + ": " + fed.error().message));
  }
  const uint64_t session = session_;
  loop::CallGuard guard(gone_);
  while (true) {
    const Result<std::optional<proto::Reply>> next = reader_->Next();
    if (!next) return Fail(AmbiguousFailure(target_.name + ": " + next.error().message));
    if (!next->has_value()) return;
    Deliver(**next);
    if (guard.gone() || session != session_) return;
  }
}

void RedisLink::Deliver(const proto::Reply& reply) {
  if (state_ == State::kUp) return user_.OnReply(reply);
  if (const std::optional<RedisFailure> failure = Greeted(reply); failure) return Fail(*failure);
  if (greeted_ == own_steps_.size() + greeting_.size()) GoUp();
}

void RedisLink::OnEnd() { Fail(AmbiguousFailure(target_.name + " closed the connection")); }

void RedisLink::OnClosed(const base::Error& error) {
  Fail(AmbiguousFailure(target_.name + ": connection lost: " + error.message));
}

void RedisLink::Fail(const RedisFailure& failure) {
  CloseAndPlan(Duration::Zero());
  user_.OnDown(failure);
}

void RedisLink::CloseAndPlan(Duration pause) {
  const bool steady = state_ == State::kUp && loop::Loop::Now() - up_since_ >= tuning_.steady_after;
  if (steady) failures_ = 0;
  CloseStream();
  state_ = State::kWaiting;
  timer_.StartAfter(base::Max(pause, NextDelay()));
}

void RedisLink::CloseStream() {
  ++session_;
  connecting_.reset();
  stream_.reset();
  reader_.reset();
}

// Zero, then backoff_first doubled up to backoff_max, the upper half of each random, so that many
// sidecars do not come back in step.
Duration RedisLink::NextDelay() {
  const int failures = failures_;
  if (failures_ < kBackoffDoublingsMax) ++failures_;
  if (failures == 0) return Duration::Zero();
  const Duration full =
      base::Min(tuning_.backoff_max, tuning_.backoff_first * (int64_t{1} << (failures - 1)));
  return full / 2 + random_.UpTo(full / 2);
}

}  // namespace leasehold::store
