// Machine: what the simulated `loop` room (sim_loop.cc) asks of the simulated machine that it runs
// on. The program's own driver and gate frame are linked against that room instead of libuv: the
// same headers, the same code above them, but time is the world's and a turn of the loop is an
// entry in the world's queue.
//
// Loop::Now() is static, as in the program, so that the machine whose code runs now is a global:
// whoever calls into a machine's code from the world stands on it first (OnMachine).
#pragma once

#include <functional>

#include "base/time.h"

namespace leasehold::simulation {

class Machine {
 public:
  virtual ~Machine() = default;
  virtual base::MonoTime BootNow() const = 0;
  virtual base::WallTime WallNow() const = 0;
  // On a later turn of this process's loop: in order, after the process wakes if it sleeps, never
  // if it ends before.
  virtual void PostTurn(std::function<void()> task) = 0;
  // When the boot clock shows `at`, late by what timers are late: after the process wakes if it
  // sleeps, never if it ends before.
  virtual void CallAt(base::MonoTime at, std::function<void()> task) = 0;
};

class OnMachine {
 public:
  explicit OnMachine(Machine& machine);
  ~OnMachine();
  OnMachine(const OnMachine&) = delete;
  OnMachine& operator=(const OnMachine&) = delete;

 private:
  Machine* former_;
};

}  // namespace leasehold::simulation
