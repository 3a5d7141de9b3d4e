// CredentialsSource: where credentials come from, asked anew each time: what CredentialsProvider
// keeps and shares comes out of one. Not here: keeping, refreshing, waiting (credentials_cache.h).
// Owned by its provider; a source may be made of other sources.
//
// Invariants: `done` is called once, later, from the loop, and not after its Fetching is destroyed
// (which cancels; also allowed inside `done`). One fetch at a time. No error holds a secret.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "aws/credentials.h"
#include "base/result.h"
#include "loop/loop.h"
#include "loop/timer.h"

namespace leasehold::aws {

struct Fetched {
  Credentials credentials;
  // How long before their expiry they should be fetched again, at most.
  base::Duration refresh_before = base::Duration::Seconds(15 * 60);
  // The source is known to hand out expired ones while it cannot make new ones, and its services
  // to take them (instance metadata: "static stability").
  bool may_outlive_expiry = false;
};
using FetchDone = std::function<void(base::Result<Fetched>)>;

class Fetching {
 public:
  virtual ~Fetching() = default;
};

class CredentialsSource {
 public:
  virtual ~CredentialsSource() = default;  // after its fetches
  [[nodiscard]] virtual std::unique_ptr<Fetching> Fetch(FetchDone done) = 0;
  virtual std::string Describe() const = 0;
};

// A result that is there already, told later.
class ReadyFetch final : public Fetching {
 public:
  ReadyFetch(loop::Loop& loop, base::Result<Fetched> result, FetchDone done)
      : result_(std::move(result)), done_(std::move(done)), timer_(loop, [this] {
          const FetchDone told = std::move(done_);
          told(std::move(result_));
        }) {
    timer_.StartAfter(base::Duration::Zero());
  }

 private:
  base::Result<Fetched> result_;
  FetchDone done_;
  loop::Timer timer_;
};

// `work` on a worker thread, owning what it touches; then `done`, unless this was destroyed.
template <typename T>
class WorkFetch final : public Fetching {
 public:
  WorkFetch(loop::Loop& loop, std::function<T()> work, std::function<void(T)> done)
      : state_(std::make_shared<State>()) {
    state_->work = std::move(work);
    state_->done = std::move(done);
    loop.Work([state = state_] { state->result.emplace(state->work()); },
              [state = state_] {
                if (!state->done) return;
                const std::function<void(T)> told = std::exchange(state->done, nullptr);
                told(std::move(*state->result));
              });
  }
  ~WorkFetch() override { state_->done = nullptr; }
  WorkFetch(const WorkFetch&) = delete;
  WorkFetch& operator=(const WorkFetch&) = delete;

 private:
  struct State {
    std::function<T()> work;      // the worker's
    std::optional<T> result;      // the worker's, then the loop's
    std::function<void(T)> done;  // the loop's
  };
  std::shared_ptr<State> state_;
};

}  // namespace leasehold::aws
