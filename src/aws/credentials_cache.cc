#include "aws/credentials_cache.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace leasehold::aws {
namespace {

using base::Duration;
using base::Error;
using base::ErrorCode;
using base::MonoTime;

// The refresh is planned anew at least this often, so that a wall clock that was set is followed.
constexpr Duration kLookAgain = Duration::Seconds(5 * 60);
// Of the time before expiry at which a refresh begins, that much is drawn: instances that were
// started together do not ask STS in the same second.
constexpr double kJitter = 0.2;
constexpr int kDoublingsMax = 16;

bool SameKey(const Credentials& a, const Credentials& b) {
  return a.key.access_key_id == b.key.access_key_id &&
         a.key.secret_access_key == b.key.secret_access_key &&
         a.key.session_token == b.key.session_token;
}

std::string Expiry(const Credentials& credentials) {
  return credentials.expires_unix_ms
             ? base::FormatWallTime(base::WallTime{*credentials.expires_unix_ms})
             : "never";
}

}  // namespace

CredentialsCache::CredentialsCache(loop::Loop& loop, std::unique_ptr<CredentialsSource> source,
                                   uint64_t seed, observe::Log& log, const CacheTimes& times,
                                   WallClock wall)
    : loop_(loop),
      source_(std::move(source)),
      random_(seed),
      log_(log),
      times_(times),
      wall_(std::move(wall)),
      timer_(loop, [this] { OnTimer(); }),
      deadline_(loop, [this] {
        OnFetched(Error{ErrorCode::kTimeout, source_->Describe() + " gave no credentials within " +
                                                 base::FormatDuration(times_.fetch_max)});
      }) {}

CredentialsCache::~CredentialsCache() = default;

std::optional<Duration> CredentialsCache::Left() const {
  if (!current_->expires_unix_ms) return std::nullopt;
  if (extended_) return extended_until_ - loop::Loop::Now();
  // A wall clock may be anywhere: years, not the nanoseconds of a Duration, are what this bounds.
  constexpr int64_t kMostMs = int64_t{366} * 24 * 3600 * 1000;
  const int64_t now = wall_().unix_ms;
  const int64_t left = std::clamp(*current_->expires_unix_ms, int64_t{0}, int64_t{1} << 53) -
                       std::clamp(now, int64_t{0}, int64_t{1} << 53);
  return Duration::Millis(std::clamp(left, -kMostMs, kMostMs));
}

bool CredentialsCache::Usable() const {
  if (!current_) return false;
  const std::optional<Duration> left = Left();
  return !left || *left > Duration::Zero();
}

bool CredentialsCache::MustWait() const {
  if (!Usable()) return true;
  if (refused_) return true;
  const std::optional<Duration> left = Left();
  return !extended_ && left && *left <= times_.mandatory;
}

void CredentialsCache::Get(Callback done) {
  const MonoTime now = loop::Loop::Now();
  const bool must = MustWait();
  const std::optional<Duration> left = current_ ? Left() : std::nullopt;
  const bool due = must || (left && *left <= refresh_before_);
  const bool allowed =
      now >= not_before_ && (!refused_ || !Usable() || now - last_started_ >= times_.reread_min);
  if (due && allowed && !fetching_) StartFetch();
  if (must && fetching_) {
    waiters_.push_back(std::move(done));
    return;
  }
  Answer(std::move(done));
}

void CredentialsCache::Answer(Callback done) {
  base::Result<SharedCredentials> result = Usable() ? base::Result<SharedCredentials>(current_)
                                                    : base::Result<SharedCredentials>(last_error_);
  loop_.Post([alive = std::weak_ptr<char>(alive_), done = std::move(done),
              result = std::move(result)]() mutable {
    if (!alive.expired()) done(std::move(result));
  });
}

void CredentialsCache::NoteRefused(const SharedCredentials& used) {
  if (!current_ || !used || !SameKey(*used, *current_)) return;
  refused_ = true;
}

void CredentialsCache::StartFetch() {
  last_started_ = loop::Loop::Now();
  timer_.Stop();
  deadline_.StartAfter(times_.fetch_max);
  fetching_ =
      source_->Fetch([this](base::Result<Fetched> result) { OnFetched(std::move(result)); });
}

void CredentialsCache::OnFetched(base::Result<Fetched> result) {
  deadline_.Stop();
  fetching_.reset();
  if (result.ok()) {
    Keep(std::move(result).value());
  } else {
    OnFailed(result.error());
  }
  TellWaiters();
}

void CredentialsCache::Keep(Fetched fetched) {
  const bool same = current_ && SameKey(*current_, fetched.credentials) &&
                    current_->expires_unix_ms == fetched.credentials.expires_unix_ms;
  const bool was_failing = std::exchange(failing_, false);
  failures_ = 0;
  not_before_ = MonoTime();
  refused_ = false;
  // The same ones stay the same object: who holds it holds the present ones.
  if (!same) current_ = std::make_shared<const Credentials>(std::move(fetched.credentials));
  const bool was_extended = std::exchange(extended_, false);
  const std::optional<Duration> left = Left();
  // Of credentials with a short life not most of it is spent on refreshing them.
  refresh_before_ = left ? base::Min(fetched.refresh_before, *left / 4) : Duration::Zero();
  refresh_before_ = refresh_before_ - random_.UpTo(refresh_before_.Scaled(kJitter));
  if (left && *left <= Duration::Zero()) {
    extended_ = true;
    extended_until_ = loop::Loop::Now() + times_.extension;
    refresh_before_ = times_.extension / 2;
    if (!was_extended || !same) {
      log_.Warn("aws.credentials_expired",
                std::string("credentials had expired by this machine's clock when they came; they "
                            "are used all the same") +
                    (fetched.may_outlive_expiry ? ", as the service prolongs them when it cannot "
                                                  "make new ones"
                                                : "; check the clock"),
                {{"source", current_->source}, {"expires", Expiry(*current_)}});
    }
  } else if (!same || was_failing) {
    log_.Info("aws.credentials_refreshed", "credentials for AWS are there",
              {{"source", current_->source}, {"expires", Expiry(*current_)}});
  }
  PlanRefresh(false);
}

void CredentialsCache::OnFailed(const Error& error) {
  failures_ = std::min(failures_ + 1, kDoublingsMax);
  const bool usable = Usable();
  const Duration last = usable ? times_.retry_last_with : times_.retry_last_without;
  const Duration wait = base::Min(times_.retry_first * (int64_t{1} << (failures_ - 1)), last)
                            .Scaled(1.0 - kJitter * random_.Unit());
  not_before_ = loop::Loop::Now() + wait;
  last_error_ = error;
  if (!std::exchange(failing_, true)) {
    log_.Warn("aws.credentials_failing",
              usable ? "credentials for AWS could not be fetched again; the old ones serve until "
                       "they expire"
                     : "there are no credentials for AWS",
              {{"error", error.message}, {"expires", usable ? Expiry(*current_) : "none"}});
  }
  PlanRefresh(true);
}

// Each is called from the loop, and may ask again, or let go of this object.
void CredentialsCache::TellWaiters() {
  const std::vector<Callback> waiters = std::exchange(waiters_, {});
  const std::weak_ptr<char> alive = alive_;
  const base::Result<SharedCredentials> result = Usable()
                                                     ? base::Result<SharedCredentials>(current_)
                                                     : base::Result<SharedCredentials>(last_error_);
  for (const Callback& waiter : waiters) {
    if (alive.expired()) return;
    waiter(result);
  }
}

void CredentialsCache::PlanRefresh(bool failed) {
  timer_.Stop();
  if (!current_) return;  // who needs them asks
  const std::optional<Duration> left = Left();
  if (!left) return;
  if (*left <= Duration::Zero()) return;
  Duration wait = base::Min(*left - refresh_before_, kLookAgain);
  if (failed) {
    // The nearer the expiry, the more often.
    wait = base::Max(not_before_ - loop::Loop::Now(), Duration::Zero());
    if (*left < Duration::Seconds(60)) wait = base::Min(wait, Duration::Seconds(5));
  }
  timer_.StartAfter(base::Max(wait, Duration::Millis(10)));
}

void CredentialsCache::OnTimer() {
  if (fetching_ || !current_) return;
  const std::optional<Duration> left = Left();
  if (left && *left > refresh_before_) {
    PlanRefresh(false);
    return;
  }
  StartFetch();
}

}  // namespace leasehold::aws
