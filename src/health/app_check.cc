#include "health/app_check.h"

#include <optional>
#include <utility>

#include "base/text.h"
#include "client/http_call.h"
#include "health/check_spec.h"
#include "loop/child.h"
#include "loop/connect.h"
#include "loop/stream.h"
#include "loop/timer.h"

namespace leasehold::health {
namespace {

using base::Error;
using base::ErrorCode;
using base::MonoTime;
using loop::Loop;

// One check under way. `done` with ok or with why not; exactly once, unless it is cancelled by
// destroying this. Each kind is bounded by options.timeout in the room that does it.
class Probe {
 public:
  using Done = std::function<void(const base::Status&)>;

  Probe(Loop& loop, const CheckSpec& spec, base::Duration timeout, Done done)
      : done_(std::move(done)) {
    switch (spec.kind) {
      case CheckSpec::Kind::kHttp: StartHttp(loop, spec, timeout); break;
      case CheckSpec::Kind::kTcp: StartTcp(loop, spec, timeout); break;
      case CheckSpec::Kind::kExec: StartExec(loop, spec, timeout); break;
      case CheckSpec::Kind::kNone: immediate_ = base::Status{}; break;
    }
  }

  // Set when the outcome was known at once: `done` is not called then.
  const std::optional<base::Status>& immediate() const { return immediate_; }

 private:
  void StartHttp(Loop& loop, const CheckSpec& spec, base::Duration timeout) {
    client::HttpRequest request;
    request.address = spec.address;
    request.target = spec.target;
    request.timeout = timeout;
    request.head_is_enough = true;
    http_ = client::StartHttpCall(
        loop, request, [this](const base::Result<client::HttpResponse>& response) {
          if (!response.ok()) {
            Finish(response.error());
          } else if (response->status < 200 || response->status > 399) {
            Finish(Error{ErrorCode::kUnavailable, "the application answered " +
                                                      std::to_string(response->status) +
                                                      "; ready would be 200 to 399"});
          } else {
            Finish({});
          }
        });
  }

  void StartTcp(Loop& loop, const CheckSpec& spec, base::Duration timeout) {
    loop::ConnectOptions options;
    options.timeout = timeout;
    tcp_ = loop::Connect(loop, spec.address, options,
                         [this](const base::Result<std::unique_ptr<loop::Stream>>& stream) {
                           Finish(stream.ok() ? base::Status{} : base::Status(stream.error()));
                         });
  }

  void StartExec(Loop& loop, const CheckSpec& spec, base::Duration timeout) {
    loop::ChildOptions options;
    options.argv = spec.argv;
    options.timeout = timeout;
    auto child = loop::Child::Start(loop, options, [this, timeout](const loop::ChildExit& exit) {
      Finish(Judge(exit, timeout));
    });
    if (!child.ok()) {
      immediate_ = child.error();
      return;
    }
    child_ = std::move(child).value();
  }

  static base::Status Judge(const loop::ChildExit& exit, base::Duration timeout) {
    if (exit.timed_out) {
      return Error{ErrorCode::kTimeout, "the check command did not end within " +
                                            base::FormatDuration(timeout) + " and was killed"};
    }
    if (exit.signal == 0 && exit.code == 0) {
      return {};
    }
    std::string why = exit.signal != 0
                          ? "the check command ended by signal " + std::to_string(exit.signal)
                          : "the check command ended with exit code " + std::to_string(exit.code);
    if (const auto said = base::Trim(exit.output); !said.empty()) {
      why += ": " + base::Printable(said.substr(0, said.find('\n')));
    }
    return Error{ErrorCode::kUnavailable, why};
  }

  // The last thing this object does: `done` destroys it, which is why the status is taken by value.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  void Finish(base::Status status) {
    const Done done = std::move(done_);
    done(status);
  }

  Done done_;
  std::optional<base::Status> immediate_;
  std::unique_ptr<client::HttpCall> http_;
  std::unique_ptr<loop::Connecting> tcp_;
  std::unique_ptr<loop::Child> child_;
};

class AppCheckImpl final : public AppCheck {
 public:
  AppCheckImpl(Loop& loop, const Options& options, CheckSpec spec, Callbacks callbacks)
      : loop_(loop),
        options_(options),
        spec_(std::move(spec)),
        callbacks_(std::move(callbacks)),
        last_success_start_(Loop::Now()),
        next_(loop, [this] { Begin(); }),
        too_long_(loop, [this] {
          if (!ready_ && callbacks_.on_unready_too_long) {
            callbacks_.on_unready_too_long();
          }
        }) {
    next_.StartAfter(base::Duration::Zero());
  }

  bool ready() const override { return ready_; }
  std::string last_error() const override { return last_error_; }

 private:
  void Begin() {
    started_ = Loop::Now();
    probe_ = std::make_unique<Probe>(loop_, spec_, options_.timeout,
                                     [this](const base::Status& status) { OnVerdict(status); });
    if (probe_->immediate().has_value()) {
      OnVerdict(base::Status(*probe_->immediate()));
    }
  }

  void OnVerdict(const base::Status& status) {
    probe_.reset();
    if (spec_.kind != CheckSpec::Kind::kNone) {
      // A fixed rhythm, counted from start to start; a check that took longer is followed at once.
      next_.StartAt(started_ + options_.interval);
    }
    const bool changed = !judged_ || ready_ != status.ok();
    judged_ = true;
    ready_ = status.ok();
    last_error_ = status.ok() ? "" : status.error().message;
    if (ready_) {
      last_success_start_ = started_;
      too_long_.Stop();
    } else if (changed) {
      // A spell begins. It may have been too long already: a check that hung is part of it.
      too_long_.StartAt(last_success_start_ + options_.unready_after);
    }
    if (changed && callbacks_.on_change) {
      callbacks_.on_change(ready_, last_error_);
    }
  }

  Loop& loop_;
  const Options options_;
  const CheckSpec spec_;
  const Callbacks callbacks_;
  bool judged_ = false;
  bool ready_ = false;
  std::string last_error_;
  MonoTime started_;             // of the check under way, or the last one
  MonoTime last_success_start_;  // at first: our own start
  loop::Timer next_;
  loop::Timer too_long_;
  std::unique_ptr<Probe> probe_;
};

}  // namespace

base::Status ValidateCheck(const std::string& check) {
  base::Result<CheckSpec> spec = ParseCheckSpec(check);
  return spec.ok() ? base::Status{} : base::Status(spec.error());
}

base::Result<std::unique_ptr<AppCheck>> AppCheck::Start(loop::Loop& loop, const Options& options,
                                                        Callbacks callbacks) {
  base::Result<CheckSpec> spec = ParseCheckSpec(options.check);
  if (!spec.ok()) {
    return spec.error();
  }
  return std::unique_ptr<AppCheck>(
      std::make_unique<AppCheckImpl>(loop, options, std::move(spec).value(), std::move(callbacks)));
}

}  // namespace leasehold::health
