#include "loop/poller.h"

#include <uv.h>

#include "base/check.h"

namespace leasehold::loop {

const int Poller::kErrorsOnly = UV_PRIORITIZED;

struct Poller::Impl {
  uv_poll_t handle{};
  Loop* loop = nullptr;
  void* owner = nullptr;
  Callback on_ready = nullptr;
  int events = 0;

  static void OnPoll(uv_poll_t* handle, int status, int events) {
    Impl* self = static_cast<Impl*>(handle->data);
    self->loop->NoteWake();
    if (status < 0) self->events = 0;  // libuv stops a handle whose descriptor reports an error
    self->on_ready(self->owner, status, events);
  }
};

int Poller::Open(Loop& loop, int fd, void* owner, Callback on_ready) {
  CHECK(impl_ == nullptr, "one descriptor per poller");
  auto* impl = new Impl;
  const int error = uv_poll_init(loop.raw(), &impl->handle, fd);
  CHECK(error != UV_EEXIST, "the descriptor is still watched by an earlier owner");
  if (error != 0) {
    delete impl;  // not registered with the loop when the descriptor was refused
    return error;
  }
  impl->handle.data = impl;
  impl->loop = &loop;
  impl->owner = owner;
  impl->on_ready = on_ready;
  impl_ = impl;
  return 0;
}

void Poller::Watch(int events) {
  if (impl_ == nullptr || impl_->events == events) return;
  impl_->events = events;
  const int error = events == 0 ? uv_poll_stop(&impl_->handle)
                                : uv_poll_start(&impl_->handle, events, &Impl::OnPoll);
  CHECK(error == 0, "only a descriptor watched twice cannot be watched");
}

int Poller::events() const { return impl_ == nullptr ? 0 : impl_->events; }

void Poller::Close() {
  if (impl_ == nullptr) return;
  uv_close(reinterpret_cast<uv_handle_t*>(&impl_->handle),
           [](uv_handle_t* handle) { delete static_cast<Impl*>(handle->data); });
  impl_ = nullptr;
}

}  // namespace leasehold::loop
