// CredentialsCache: the CredentialsProvider over one source: asks it once for all who wait, keeps
// what it gave, fetches anew in the background before that expires, and goes on with it while that
// fails. The wall clock is looked at whenever credentials are handed out, so that a clock that
// steps is noticed at the next call; timers only wake it up.
//
// What seems to have expired when it arrives is used all the same, with a warning: either our clock
// is wrong, or the source cannot do better now; the service decides.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aws/credentials.h"
#include "aws/credentials_source.h"
#include "base/random.h"
#include "base/time.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "observe/log.h"

namespace leasehold::aws {

struct CacheTimes {
  // Beyond the longest of any source with all its attempts: a fetch that hangs (a file on a dead
  // network share) is given up, and tried again.
  base::Duration fetch_max = base::Duration::Seconds(60);
  // This close to the expiry the old ones are not handed out any more while new ones are under way:
  // a call lasts some seconds.
  base::Duration mandatory = base::Duration::Seconds(10);
  // Between attempts that fail: doubles from the first to the last. The last is short where nobody
  // can be served, so that a repaired source is seen within a lease's time; a background refresh
  // has minutes.
  base::Duration retry_first = base::Duration::Millis(500);
  base::Duration retry_last_without = base::Duration::Seconds(2);
  base::Duration retry_last_with = base::Duration::Seconds(60);
  // Between two fetches that refused credentials cause.
  base::Duration reread_min = base::Duration::Seconds(1);
  // Until what seemed expired on arrival is fetched again; SDKs wait 5 to 10 minutes.
  base::Duration extension = base::Duration::Seconds(5 * 60);
};

class CredentialsCache final : public CredentialsProvider {
 public:
  using WallClock = std::function<base::WallTime()>;
  CredentialsCache(loop::Loop& loop, std::unique_ptr<CredentialsSource> source, uint64_t seed,
                   observe::Log& log, const CacheTimes& times = {},
                   WallClock wall = &loop::Loop::WallNow);
  ~CredentialsCache() override;
  CredentialsCache(const CredentialsCache&) = delete;
  CredentialsCache& operator=(const CredentialsCache&) = delete;

  void Get(Callback done) override;
  void NoteRefused(const SharedCredentials& used) override;
  std::string Describe() const override { return source_->Describe(); }

 private:
  // Until when the present ones are good; nullopt: for ever. Meaningless without any.
  std::optional<base::Duration> Left() const;
  bool Usable() const;  // there are some, and they have not expired
  bool MustWait() const;
  void StartFetch();
  void OnFetched(base::Result<Fetched> result);
  void Keep(Fetched fetched);
  void OnFailed(const base::Error& error);
  void TellWaiters();
  void PlanRefresh(bool failed);
  void OnTimer();
  void Answer(Callback done);

  loop::Loop& loop_;
  const std::unique_ptr<CredentialsSource> source_;
  base::Random random_;
  observe::Log& log_;
  const CacheTimes times_;
  const WallClock wall_;

  SharedCredentials current_;
  base::Duration refresh_before_;
  base::MonoTime extended_until_;  // what seemed expired on arrival serves until then
  bool extended_ = false;
  bool refused_ = false;  // a service refused the present ones
  bool failing_ = false;  // the last fetch failed
  base::Error last_error_;
  int failures_ = 0;           // in a row
  base::MonoTime not_before_;  // no attempt before, after one that failed
  base::MonoTime last_started_ = base::MonoTime::FromNanos(INT64_MIN / 2);

  std::vector<Callback> waiters_;
  std::unique_ptr<Fetching> fetching_;
  loop::Timer timer_;     // the next refresh
  loop::Timer deadline_;  // of the fetch
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace leasehold::aws
