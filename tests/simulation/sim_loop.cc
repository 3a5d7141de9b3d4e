// The `loop` room as simulated: every function of loop.h, timer.h and listener.h that the driver
// and the gate frame call. What they never call here (sockets, worker threads) is a CHECK.
#include "simulation/sim_loop.h"

#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "loop/stream.h"
#include "loop/timer.h"

namespace leasehold::simulation {
namespace {

Machine* current = nullptr;  // whose code runs now; a run is single-threaded

Machine& Current() {
  CHECK(current != nullptr, "code of the program runs on a machine");
  return *current;
}

}  // namespace

OnMachine::OnMachine(Machine& machine) : former_(std::exchange(current, &machine)) {}
OnMachine::~OnMachine() { current = former_; }

}  // namespace leasehold::simulation

namespace leasehold::loop {

using simulation::Machine;

// ---- Loop: belongs to the machine on which it was made ----

struct Loop::Impl {
  Machine* machine;
};

Loop::Loop() : impl_(std::make_unique<Impl>(Impl{&simulation::Current()})) {}
Loop::~Loop() = default;
base::MonoTime Loop::Now() { return simulation::Current().BootNow(); }
base::WallTime Loop::WallNow() { return simulation::Current().WallNow(); }
uint64_t Loop::Entropy() { CHECK(false, "a run draws from its seed alone"); }
void Loop::Run() { CHECK(false, "the world runs the loops"); }
void Loop::Stop() {}
bool Loop::RunOnce() { return false; }
void Loop::Post(std::function<void()> task) { impl_->machine->PostTurn(std::move(task)); }
void Loop::Work(std::function<void()>, std::function<void()>) {
  CHECK(false, "no worker threads here");
}
base::Duration Loop::TakeLateness() { return std::exchange(lateness_, base::Duration()); }
std::span<char> Loop::scratch() { return {}; }
uv_loop_s* Loop::raw() { return nullptr; }
void Loop::Wake() {}

// ---- Timer: never early, late by what the machine is late ----

struct Timer::Impl : std::enable_shared_from_this<Timer::Impl> {
  explicit Impl(std::function<void()> fire) : on_fire(std::move(fire)) {}

  void Book() {
    booked = true;
    booked_for = at;
    const uint64_t mine = ++booking;
    machine->CallAt(at, [weak = weak_from_this(), mine] {
      if (const auto timer = weak.lock()) timer->Due(mine);
    });
  }

  void Due(uint64_t mine) {
    if (mine != booking) return;
    booked = false;
    if (at.is_never()) return;
    if (machine->BootNow() < at) return Book();
    at = base::MonoTime::Never();
    on_fire();
  }

  std::function<void()> on_fire;
  Machine* machine = &simulation::Current();
  base::MonoTime at = base::MonoTime::Never();
  bool booked = false;  // a call of Due() is under way, for `booked_for`
  base::MonoTime booked_for;
  uint64_t booking = 0;  // which one counts
  std::shared_ptr<Impl> self;
};

Timer::Timer(Loop&, std::function<void()> on_fire) {
  auto impl = std::make_shared<Impl>(std::move(on_fire));
  impl_ = impl.get();
  impl_->self = std::move(impl);
}

Timer::~Timer() {
  impl_->at = base::MonoTime::Never();
  impl_->self.reset();
}

void Timer::StartAt(base::MonoTime at) {
  impl_->at = at;
  // A call that comes sooner books the rest; so a timer that is put off costs nothing.
  if (!at.is_never() && (!impl_->booked || at < impl_->booked_for)) impl_->Book();
}

void Timer::StartAfter(base::Duration d) { StartAt(Loop::Now() + d); }
void Timer::Stop() { impl_->at = base::MonoTime::Never(); }
bool Timer::armed() const { return !impl_->at.is_never(); }

// ---- Listener: an address that it is reached at; the world brings what arrives (sim_gate.h) ----

namespace {

class Bound final : public Listener {
 public:
  explicit Bound(base::Address address) : address_(std::move(address)) {}
  const base::Address& bound() const override { return address_; }
  void Pause() override {}
  void Resume() override {}
  void AcceptWaiting() override {}

 private:
  const base::Address address_;
};

}  // namespace

base::Result<std::unique_ptr<Listener>> Listener::Open(Loop&, const base::Address& address,
                                                       const ListenOptions&, AcceptCallback,
                                                       TroubleCallback) {
  return std::unique_ptr<Listener>(std::make_unique<Bound>(address));
}

std::unique_ptr<Stream> AdoptSocket(Loop&, int, std::string) { CHECK(false, "no sockets here"); }

}  // namespace leasehold::loop
