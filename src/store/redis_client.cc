#include "store/redis_client.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace leasehold::store {
namespace {

using base::Duration;
using base::MonoTime;

// Calls outstanding at a time: dozens of leases with one call each and their WAITs; more is a bug
// or a server that answers nothing, and must not become memory.
constexpr size_t kCallsMax = 1024;
// Bytes the kernel did not take: a thousand commands; beyond that the connection is stuck.
constexpr size_t kQueuedBytesMax = size_t{1024} * 1024;

// One time-out may be a slow answer; a second without a single byte in between is a dead
// connection. Counted from the oldest question on it: nobody answers what was not asked.
constexpr int64_t kTimeoutsToDead = 2;

// A timer this late means that the loop stalled; a millisecond is a turn that reads the sockets.
constexpr Duration kStall = Duration::Millis(20);
constexpr Duration kOneTurn = Duration::Millis(1);

// A call's time-out is what was left of a deadline: 249.998ms are 250ms to people.
std::string Rounded(Duration timeout) {
  const int64_t millis = (timeout + Duration::Micros(500)).millis();
  return base::FormatDuration(Duration::Millis(millis > 0 ? millis : 1));
}

}  // namespace

RedisClient::RedisClient(loop::Loop& loop, const RedisTarget& target, const RedisTuning& tuning,
                         std::vector<std::string> greeting, Hooks hooks)
    : target_(target),
      tuning_(tuning),
      hooks_(std::move(hooks)),
      link_(loop, target, tuning, std::move(greeting), *this),
      timer_(loop, [this] { OnTimer(); }),
      poster_(loop),
      last_down_(AmbiguousFailure(target.name + ": not connected yet")) {}

RedisClient::~RedisClient() { loop::CallGuard::MarkGone(gone_); }

void RedisClient::Call(std::string command, Duration timeout, Done done) {
  timeout = base::Min(timeout, tuning_.command_timeout);
  Pending pending{std::move(command), MonoTime(), loop::Loop::Now() + timeout, timeout,
                  std::move(done)};
  std::string why;
  if (sent_.size() + waiting_.size() >= kCallsMax) {
    why = " has " + std::to_string(kCallsMax) + " calls outstanding, which is the limit";
  } else if (link_.queued() > kQueuedBytesMax) {
    why = " does not take more than " + base::FormatSize(kQueuedBytesMax) + " of waiting commands";
  } else if (!link_.started()) {
    why = ": the store is closed";
  }
  if (!why.empty()) {
    const RedisFailure failure = AmbiguousFailure(target_.name + why + "; the call was not sent");
    poster_.Post([done_now = std::move(pending.done), failure] {
      done_now({std::nullopt, failure});
    });
    return;
  }
  if (link_.up() && !retiring_ && timeout > Duration::Zero()) {
    Transmit(std::move(pending));
  } else {
    waiting_.push_back(std::move(pending));
  }
  Arm();
}

void RedisClient::Transmit(Pending pending) {
  link_.Send(pending.command);
  pending.command = {};
  pending.sent_at = loop::Loop::Now();
  sent_.push_back(std::move(pending));
}

void RedisClient::FlushWaiting() {
  const MonoTime now = loop::Loop::Now();
  std::deque<Pending> expired;
  while (!waiting_.empty() && link_.up() && !retiring_) {
    Pending pending = std::move(waiting_.front());
    waiting_.pop_front();
    if (pending.deadline > now) {
      Transmit(std::move(pending));
    } else {
      expired.push_back(std::move(pending));  // its timer is due: it answers
    }
  }
  waiting_.insert(waiting_.begin(), std::make_move_iterator(expired.begin()),
                  std::make_move_iterator(expired.end()));
}

// ---- the link ----

std::optional<RedisFailure> RedisClient::OnGreeting(size_t index, const proto::Reply& reply) {
  return hooks_.on_greeting ? hooks_.on_greeting(index, reply) : std::nullopt;
}

void RedisClient::OnUp() {
  retiring_ = false;
  heard_at_ = loop::Loop::Now();
  loop::CallGuard guard(gone_);
  if (hooks_.on_up) hooks_.on_up();
  if (guard.gone() || !link_.up()) return;
  FlushWaiting();
  Arm();
}

void RedisClient::OnReply(const proto::Reply& reply) {
  if (sent_.empty()) {  // an error before a close ("max number of clients"), or a hostile server
    const RedisFailure failure =
        AmbiguousFailure(target_.name + " sent what nobody asked for: " + reply.Describe());
    link_.Drop();
    return OnDown(failure);
  }
  late_look_ = false;
  heard_at_ = loop::Loop::Now();
  const Done done = std::move(sent_.front().done);
  sent_.pop_front();
  if (reply.is_error() && WantsReconnect(RedisErrorCode(reply.text()))) retiring_ = true;
  if (retiring_ && sent_.empty()) {
    last_down_ = ClassifyRedisError(target_.name, reply.text());
    link_.Drop();
    if (hooks_.on_down) {
      loop::CallGuard guard(gone_);
      hooks_.on_down(last_down_);
      if (guard.gone()) return;
    }
  }
  Arm();
  if (done) done({reply, {}});
}

void RedisClient::OnDown(const RedisFailure& failure) {
  last_down_ = failure;
  Answers answers;
  RedisFailure lost = failure;
  lost.kind = RedisFailure::Kind::kAmbiguous;  // what was sent may have happened
  TakeAll(sent_, lost, answers);
  TakeAll(waiting_, failure, answers);
  Arm();
  loop::CallGuard guard(gone_);
  if (Deliver(std::move(answers)) || guard.gone()) return;
  if (hooks_.on_down) hooks_.on_down(failure);
}

// ---- deadlines ----

void RedisClient::Arm() {
  MonoTime earliest = MonoTime::Never();
  for (const Pending& pending : sent_) earliest = base::Min(earliest, pending.deadline);
  for (const Pending& pending : waiting_) earliest = base::Min(earliest, pending.deadline);
  timer_.StartAt(earliest);
}

// After a stall of the loop libuv runs timers before it reads sockets, and the answer may lie
// there: one more turn, before a connection that works is given up.
bool RedisClient::LetSocketBeRead(MonoTime now) {
  const bool late = !sent_.empty() && std::any_of(sent_.begin(), sent_.end(), [now](const auto& p) {
    return now - p.deadline > kStall;
  });
  if (!late || late_look_) {
    late_look_ = false;
    return false;
  }
  late_look_ = true;
  timer_.StartAfter(kOneTurn);
  return true;
}

// Answers what is late. True if the connection is dead rather than slow: silent for two time-outs.
bool RedisClient::ForsakeLate(MonoTime now, Answers& answers, RedisFailure& down) {
  bool dead = false;
  if (sent_.empty()) return dead;
  const MonoTime silent_since = base::Max(heard_at_, sent_.front().sent_at);
  for (Pending& pending : sent_) {
    if (pending.deadline > now) continue;
    dead = dead || now - silent_since >= pending.timeout * kTimeoutsToDead;
    down = AmbiguousFailure(target_.name + " did not answer within " + Rounded(pending.timeout));
    answers.emplace_back(std::exchange(pending.done, nullptr), RedisAnswer{std::nullopt, down});
    pending.deadline = MonoTime::Never();
  }
  return dead;
}

void RedisClient::OnTimer() {
  const MonoTime now = loop::Loop::Now();
  if (LetSocketBeRead(now)) return;
  Answers answers;
  RedisFailure down;
  const bool dropped = ForsakeLate(now, answers, down);
  if (dropped) {
    const RedisFailure others = AmbiguousFailure("the connection was closed because " +
                                                 down.sentence + " to an earlier call on it");
    TakeAll(sent_, others, answers);
    link_.Drop();
    last_down_ = down;
  }
  for (Pending& pending : waiting_) {
    if (pending.deadline > now) continue;
    RedisFailure failure = last_down_;
    failure.sentence =
        "no connection within " + Rounded(pending.timeout) + "; " + last_down_.sentence;
    if (link_.up()) {
      failure = AmbiguousFailure(target_.name + " was not asked: the call's time-out was over");
    }
    answers.emplace_back(std::move(pending.done), RedisAnswer{std::nullopt, failure});
  }
  std::erase_if(waiting_, [now](const Pending& pending) { return pending.deadline <= now; });
  Arm();
  loop::CallGuard guard(gone_);
  if (Deliver(std::move(answers)) || guard.gone()) return;
  if (dropped && hooks_.on_down) hooks_.on_down(down);
}

// ---- answers ----

void RedisClient::TakeAll(std::deque<Pending>& from, const RedisFailure& failure, Answers& into) {
  for (Pending& pending : from) {
    if (!pending.done) continue;
    into.emplace_back(std::move(pending.done), RedisAnswer{std::nullopt, failure});
  }
  from.clear();
}

// By value: a callback may end this client and with it whatever a reference would show.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
bool RedisClient::Deliver(Answers answers) {
  loop::CallGuard guard(gone_);
  for (auto& [done, answer] : answers) {
    done(std::move(answer));
    if (guard.gone()) return true;  // the rest belonged to whoever destroyed us
  }
  return false;
}

void RedisClient::Close(const std::string& why) {
  link_.Stop();
  Answers answers;
  TakeAll(sent_, AmbiguousFailure(why), answers);
  TakeAll(waiting_, AmbiguousFailure(why), answers);
  timer_.Stop();
  Deliver(std::move(answers));
}

}  // namespace leasehold::store
