// GuardedChild: the command of a watchdog as the loop sees it: started, told to end, killed, and
// what became of it. One command at a time, started again as often as wanted. The keeping of the
// permit's end is not here but in the watchdog (watchdog.h), which does it also when this process
// cannot. Owned by whoever runs the command; the watchdog must outlive it.
//
// Invariant: if the watchdog dies or does not answer, the command is killed from here, at once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "loop/loop.h"
#include "loop/watchdog.h"

namespace leasehold::loop {

struct GuardedExit {
  enum class Cause {
    kItself,      // of its own
    kTerminated,  // after Terminate()
    kKilled,      // by Kill(), or because it did not heed a TERM in time
    kExpired,     // by the watchdog, because its permit was ending
  };
  Cause cause = Cause::kItself;
  int code = -1;   // exit code, or -1
  int signal = 0;  // terminating signal, or 0
};

class GuardedChild {
 public:
  // Called from the loop; none may destroy this object.
  struct Callbacks {
    std::function<void(int pid)> on_started;
    // Nothing runs. `why` is a sentence.
    std::function<void(const std::string& why)> on_start_failed;
    // The command itself has ended. Processes it left behind get TERM and, after the watchdog's
    // stop_timeout, KILL.
    std::function<void(const GuardedExit&)> on_exit;
    // Nothing of it is left.
    std::function<void(const GuardedExit&)> on_end;
    // The watchdog is gone or did not answer, and what ran (if anything) was killed. Nothing can be
    // started any more. `why` is a sentence, and tells whether anything is left.
    std::function<void(const std::string& why, bool ran)> on_lost;
  };

  GuardedChild(Loop& loop, Watchdog& watchdog, Callbacks callbacks);
  ~GuardedChild();  // kills at once
  GuardedChild(const GuardedChild&) = delete;
  GuardedChild& operator=(const GuardedChild&) = delete;

  // With these variables added to the environment. `marker` is one of them, unlike any other
  // process's, by which the command's descendants are known. The command inherits `keep_open`, for
  // locks that must live as long as it does; at most kKeptDescriptorsMax (watchdog_words.h).
  base::Status Start(const std::map<std::string, std::string>& env, const std::string& marker,
                     const std::vector<int>& keep_open, base::MonoTime expiry);
  // The permit's end, which moves with each renewal; MonoTime() (zero): it is over.
  void SetExpiry(base::MonoTime expiry);
  // TERM to its process group, KILL to all of it at `kill_at`.
  void Terminate(base::MonoTime kill_at);
  void Kill();

  // From Start until on_start_failed, on_end or on_lost.
  bool alive() const;
  bool lost() const;
  int pid() const;  // 0: none, or not known yet

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::loop
