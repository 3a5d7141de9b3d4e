// WatchdogProcess: what runs in the watchdog's own process (watchdog.h): starts the command, reaps
// it and what it leaves behind, and kills all of it when ordered, when the permit is about to end,
// or some time after the sidecar has died. One thread, one poll(2), no loop; nothing that it
// waits for but that poll. Private to this room.
//
// Invariants: from kKillBeforeExpiry before the shared expiry on, nothing is started and whatever
// runs is killed, again and again until it is gone; the command is never started without that
// check.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/time.h"
#include "loop/watchdog.h"
#include "loop/watchdog_words.h"

namespace leasehold::loop {

class WatchdogProcess {
 public:
  // Every signal must be blocked; the command gets `command_mask`.
  WatchdogProcess(const WatchdogOptions& options, int socket, WatchdogShared& shared,
                  const sigset_t& command_mask);
  // Until the sidecar is gone and nothing of the command is left.
  void Run();

 private:
  bool OpenDescriptors();
  void WaitForNews();
  base::MonoTime NextDeadline() const;

  // ---- the sidecar's orders ----
  void ReadOrders();
  bool ReadOrder();
  void Obey(const WatchdogOrder& order, const std::string& environment);
  void KeepDescriptors(const std::vector<int>& fds);
  void SidecarGone();

  // ---- the command ----
  void StartCommand(const std::string& environment);
  [[noreturn]] void BecomeCommand(const std::string& environment, int failure);
  void ReadStartResult();
  void Reap();
  void CommandExited(int status);
  void AllEnded();
  bool alive() const { return command_ != 0; }

  // ---- ending it ----
  void Terminate(base::MonoTime kill_at);
  void TerminateRest();
  void Enforce();
  void BeginKilling(WatchdogReport::Cause cause);
  void SignalGroup(int signal);
  void SignalAll(int signal);
  void NoteGroup();
  base::MonoTime LastMoment() const;

  void Report(WatchdogReport::Kind kind, int value);
  void Say(std::string_view event, std::string_view message);

  const WatchdogOptions& options_;
  WatchdogShared& shared_;
  const sigset_t command_mask_;
  const pid_t own_pid_;
  const bool in_background_;  // standard input is a terminal, and somebody else reads it
  int socket_;                // -1: the sidecar is gone
  int signals_ = -1;
  int timer_ = -1;
  bool told_gone_ = false;

  // A command, from its fork until nothing of it is left.
  pid_t command_ = 0;      // 0: none
  int start_result_ = -1;  // a pipe that closes when the command was executed, or brings errno
  int start_error_ = 0;
  bool exited_ = false;     // reaped; what it left behind may live on
  bool told_rest_ = false;  // what it left behind
  int status_ = 0;
  WatchdogReport::Cause cause_ = WatchdogReport::kItself;
  base::MonoTime kill_at_ = base::MonoTime::Never();
  bool killing_ = false;
  base::MonoTime next_kill_;
  base::Duration kill_pause_;
  std::vector<int> kept_;  // locks that live as long as the command does
};

}  // namespace leasehold::loop
