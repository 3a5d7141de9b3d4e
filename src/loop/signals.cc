#include "loop/signals.h"

#include <uv.h>

#include <utility>

#include "base/check.h"

namespace leasehold::loop {
namespace {

struct Watched {
  uv_signal_t handle{};
  Loop* loop = nullptr;
  std::shared_ptr<std::function<void(int)>> on_signal;  // kept alive while it runs
};

class SignalsImpl final : public Signals {
 public:
  SignalsImpl(Loop& loop, const std::vector<int>& signals, std::function<void(int)> on_signal) {
    auto shared = std::make_shared<std::function<void(int)>>(std::move(on_signal));
    for (const int signal : signals) Add(loop, signal, shared);
  }

  ~SignalsImpl() override {
    for (Watched* watched : watched_) {
      watched->on_signal.reset();
      uv_close(reinterpret_cast<uv_handle_t*>(&watched->handle),
               [](uv_handle_t* handle) { delete static_cast<Watched*>(handle->data); });
    }
  }

 private:
  void Add(Loop& loop, int signal, const std::shared_ptr<std::function<void(int)>>& on_signal) {
    auto* watched = new Watched{{}, &loop, on_signal};
    watched->handle.data = watched;
    CHECK(uv_signal_init(loop.raw(), &watched->handle) == 0, "no pipe for signals at start");
    watched_.push_back(watched);
    const int error = uv_signal_start(&watched->handle, &SignalsImpl::OnSignal, signal);
    CHECK(error == 0, "only SIGKILL and SIGSTOP, which nobody may ask for, cannot be watched");
    // Waiting for a signal is no work of its own: Run() may end without one.
    uv_unref(reinterpret_cast<uv_handle_t*>(&watched->handle));
  }

  static void OnSignal(uv_signal_t* handle, int signal) {
    auto* watched = static_cast<Watched*>(handle->data);
    watched->loop->NoteWake();
    const std::shared_ptr<std::function<void(int)>> on_signal = watched->on_signal;
    if (on_signal) (*on_signal)(signal);
  }

  std::vector<Watched*> watched_;
};

}  // namespace

std::unique_ptr<Signals> Signals::Watch(Loop& loop, const std::vector<int>& signals,
                                        std::function<void(int)> on_signal) {
  return std::make_unique<SignalsImpl>(loop, signals, std::move(on_signal));
}

}  // namespace leasehold::loop
