#include "loop/relay.h"

#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <array>
#include <optional>
#include <utility>

#include "base/check.h"
#include "loop/lifetime.h"
#include "loop/poller.h"
#include "loop/relay_direction.h"
#include "loop/socket_address.h"
#include "loop/timer.h"

namespace leasehold::loop {
namespace {

class RelayImpl;

// One of the two connections, with the direction that flows out of it.
struct Side {
  Side(Loop& loop, int descriptor, const char* side_name, const RelayOptions& options,
       std::string_view first, std::function<bool(std::string_view)> look_at_first)
      : fd(descriptor),
        name(side_name),
        out(loop, options.buffer_bytes, first, std::move(look_at_first)) {}

  // What came before a break is still read and passed on.
  void Break(int error_number) {
    if (!broken) broken = SystemError(std::string("relay, side ") + name, error_number);
  }

  RelayImpl* relay = nullptr;
  Side* other = nullptr;
  int fd;
  const char* name;
  Poller poller;
  RelayDirection out;   // from this side to the other
  bool ended = false;   // nothing more will be read from it
  bool passed = false;  // that end was passed on to the other side (or cannot be any more)
  bool quiet = false;   // hung up in order: watching would report it for ever
  std::optional<base::Error> broken;  // nothing more can be written to it
};

class RelayImpl final : public Relay {
 public:
  RelayImpl(Loop& loop, int fd_a, int fd_b, std::string_view first_for_b,
            std::string_view first_for_a, const RelayOptions& options,
            std::function<bool()> may_pass, DoneCallback done)
      : loop_(loop),
        may_pass_(std::move(may_pass)),
        done_(std::move(done)),
        poster_(loop),
        a_(loop, fd_a, "a", options, first_for_b, options.look_at_first),
        b_(loop, fd_b, "b", options, first_for_a, nullptr),
        idle_timeout_(options.idle_timeout),
        idle_timer_(loop, [this] { OnIdleTimer(); }),
        last_move_(Loop::Now()) {
    a_.relay = b_.relay = this;
    a_.other = &b_;
    b_.other = &a_;
  }

  ~RelayImpl() override {
    for (Side* side : {&a_, &b_}) {
      side->poller.Close();
      if (reset_on_close_) {
        const linger now{1, 0};
        setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
      }
      close(side->fd);
    }
  }

  void Start() {
    for (Side* side : {&a_, &b_}) {
      const int error = side->poller.Open(loop_, side->fd, side, &RelayImpl::OnReady);
      if (error != 0) side->Break(-error);
    }
    if (idle_timeout_ > base::Duration::Zero()) idle_timer_.StartAfter(idle_timeout_);
    poster_.Post([this] { Begin(); });
  }

  RelayStats stats() const override { return {a_.out.sent(), b_.out.sent()}; }
  void ResetOnClose() override { reset_on_close_ = true; }

 private:
  static void OnReady(void* side_pointer, int status, int events) {
    auto* side = static_cast<Side*>(side_pointer);
    side->relay->HandleReady(*side, status, events);
  }

  void Begin() {
    if (a_.broken || b_.broken) return Finish(a_.broken ? *a_.broken : *b_.broken);
    for (Side* side : {&a_, &b_}) {
      if (side->out.pending() && !finished_) FlushTo(*side->other);
    }
    Settle();
  }

  void HandleReady(Side& side, int status, int events) {
    const bool trouble = status < 0 || (events & Poller::kErrorsOnly) != 0;
    if ((events & UV_WRITABLE) != 0 && side.other->out.pending()) FlushTo(side);
    if (WantsRead(side)) {
      if (trouble || (events & UV_READABLE) != 0) ReadFrom(side);
    } else if (trouble && !finished_) {
      NoticeError(side);
    }
    Settle();
  }

  bool WantsRead(const Side& side) const {
    return !finished_ && !side.ended && !side.out.pending() && !side.other->broken;
  }

  void ReadFrom(Side& side) {
    switch (side.out.Move(side.fd, side.other->fd, may_pass_)) {
      case RelayDirection::Step::kNothing: break;
      case RelayDirection::Step::kMoved: last_move_ = loop_.CachedNow(); break;
      case RelayDirection::Step::kEnded: side.ended = true; break;
      case RelayDirection::Step::kReadFailed:
        side.ended = true;
        side.Break(side.out.error_number());
        side.other->out.Drop();
        break;
      case RelayDirection::Step::kWriteFailed: BreakWriting(*side.other); break;
      case RelayDirection::Step::kRefused: Refuse(); break;
    }
  }

  void FlushTo(Side& side) {
    switch (side.other->out.Flush(side.fd, may_pass_)) {
      case RelayDirection::Step::kWriteFailed: BreakWriting(side); break;
      case RelayDirection::Step::kRefused: Refuse(); break;
      case RelayDirection::Step::kMoved: last_move_ = loop_.CachedNow(); break;
      default: break;
    }
  }

  // `side` takes nothing more. What it sent before is still read to its end.
  void BreakWriting(Side& side) {
    side.Break(side.other->out.error_number());
    side.other->out.Drop();
  }

  void Refuse() {
    Finish(base::Error{base::ErrorCode::kRefused,
                       "relay: bytes may not pass, or no longer: the permit is over"});
  }

  void NoticeError(Side& side) {
    int error_number = 0;
    socklen_t size = sizeof(error_number);
    getsockopt(side.fd, SOL_SOCKET, SO_ERROR, &error_number, &size);
    if (error_number == 0) {
      side.quiet = true;
    } else {
      side.Break(error_number);
      side.other->out.Drop();
    }
  }

  // Passes ends on, finishes when there is nothing left to do, and watches for what there is.
  void Settle() {
    if (finished_) return;
    for (Side* side : {&a_, &b_}) {
      if (side->passed || side->out.pending()) continue;
      if (side->other->broken) {
        side->passed = true;  // nobody left to tell
      } else if (side->ended) {
        side->passed = true;
        if (!side->broken) shutdown(side->other->fd, SHUT_WR);
      }
      // A broken side whose last bytes went through: the relay is over.
      if (side->broken && side->ended) return Finish(*side->broken);
    }
    for (Side* side : {&a_, &b_}) {
      if (side->broken && side->passed) return Finish(*side->broken);
    }
    if (a_.passed && b_.passed) return Finish({});
    UpdateInterest(a_);
    UpdateInterest(b_);
  }

  void UpdateInterest(Side& side) {
    int want = 0;
    if (WantsRead(side)) want |= UV_READABLE;
    if (!side.broken && side.other->out.pending()) want |= UV_WRITABLE;
    if (want == 0 && !side.quiet && !side.broken) want = Poller::kErrorsOnly;
    side.poller.Watch(want);
  }

  void OnIdleTimer() {
    const base::MonoTime due = last_move_ + idle_timeout_;
    if (Loop::Now() < due) {
      idle_timer_.StartAt(due);
      return;
    }
    Finish(base::Error{base::ErrorCode::kTimeout, "relay: no byte moved for " +
                                                      std::to_string(idle_timeout_.millis()) +
                                                      " ms (idle time-out)"});
  }

  // An end that is not in order is passed on as a reset: a FIN would tell the peer that it got all.
  void Finish(base::Status status) {
    if (finished_) return;
    finished_ = true;
    if (!status) reset_on_close_ = true;
    idle_timer_.Stop();
    a_.poller.Watch(0);
    b_.poller.Watch(0);
    status_ = std::move(status);
    // On the next turn: callers up the stack still touch this object, and `done` may destroy it.
    poster_.Post([this] {
      const DoneCallback done = std::move(done_);
      done(std::move(status_), stats());
    });
  }

  Loop& loop_;
  std::function<bool()> may_pass_;
  DoneCallback done_;
  Poster poster_;
  Side a_;
  Side b_;
  base::Duration idle_timeout_;
  Timer idle_timer_;
  base::MonoTime last_move_;
  base::Status status_;
  bool finished_ = false;
  bool reset_on_close_ = false;
};

}  // namespace

std::unique_ptr<Relay> Relay::Start(Loop& loop, int fd_a, int fd_b, std::string_view first_for_b,
                                    std::string_view first_for_a, const RelayOptions& options,
                                    std::function<bool()> may_pass, DoneCallback done) {
  CHECK(fd_a >= 0 && fd_b >= 0, "a relay needs two open descriptors");
  auto relay = std::make_unique<RelayImpl>(loop, fd_a, fd_b, first_for_b, first_for_a, options,
                                           std::move(may_pass), std::move(done));
  relay->Start();
  return relay;
}

}  // namespace leasehold::loop
