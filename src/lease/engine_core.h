// Engine::Core: the protocol's state, private to the lease room. engine.cc holds observing,
// acquiring, renewing and losing; engine_release.cc stepping down, releasing and the hold-off. Read
// engine.cc first.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "lease/engine.h"
#include "lease/observer.h"
#include "lease/term.h"

namespace leasehold::lease {

class Engine::Core {
 public:
  Core(const Options& options, Identity identity, uint64_t seed, base::MonoTime now,
       const Memory& memory);

  void Step(base::MonoTime now, const Event& event, Effects& effects);
  base::MonoTime NextDeadline() const;
  View MakeView() const;
  State state() const { return state_; }

  void SetPeers(std::map<std::string, std::string> peers) { peers_ = std::move(peers); }
  const std::optional<Record>& seen() const { return observer_.record(); }
  const Permit& permit() const { return permit_; }
  const Timing& timing() const { return timing_; }

 private:
  using MonoTime = base::MonoTime;
  using Duration = base::Duration;

  // Why the one store call under way was made; its answer is read accordingly.
  enum class Purpose {
    kObserve,         // a standby's poll
    kAcquire,         // compare-and-set of a new term
    kConfirmAcquire,  // read after an ambiguous acquisition, or a conflict without a record
    kRenew,           // compare-and-set of the term
    kResolve,         // read after an ambiguous renewal, or a conflict that came without a record
    kAuthoritative,   // the read after max_renew_fails failed rounds
    kRelease,         // compare-and-set that gives the lease back
    kResolveRelease,  // read after an ambiguous release
    kAbandoned,       // its term ended meanwhile; the answer is dropped
  };
  struct Op {
    uint64_t id = 0;
    Purpose purpose = Purpose::kObserve;
    MonoTime sent_at;
    MonoTime give_up_at;  // an answer missing by then is an ambiguous one
    uint64_t beat = 0;    // of a write
    Record record;        // of a write
  };
  // Both kinds of answer in one shape: what the store showed, and what became of a write.
  struct Answer {
    enum class Kind { kRecord, kAbsent, kApplied, kConflictBlind, kAmbiguous, kRefused };
    Kind kind = Kind::kAmbiguous;
    bool conflict = false;  // kRecord, kAbsent: shown by a write that did not take
    std::optional<Record> record;
    Version version;
    bool holder_dead = false;
    std::string error;
    bool failed() const { return kind == Kind::kAmbiguous || kind == Kind::kRefused; }
  };
  static constexpr const char* kTakesNothingBack =
      "this process is shutting down and takes nothing back";
  // A takeover that failed after the lease was held is tried again after 1 to 30 s (DESIGN 2.6).
  static constexpr base::Duration kStartBackoffMin = base::Duration::Seconds(1);
  static constexpr base::Duration kStartBackoffMax = base::Duration::Seconds(30);

  // ---- engine.cc: events ----
  void Handle(const ReadAnswer& answer);
  void Handle(const CasAnswer& answer);
  void Handle(const Hint& hint);
  void Handle(const PushState& push);
  void Handle(const AppState& app);
  void Handle(const AppUnreadyTooLong&);
  void Handle(const StepDownRequest& request);
  void Handle(const Drained& drained);
  void Handle(const StartFailed& failed);
  void Handle(const LostTime&);
  void Handle(const Shutdown& shutdown);
  void Handle(const Tick&) {}

  void ExpireIfOver();
  void RunTimers();
  void RunTimersOnce();

  // ---- engine.cc: the store ----
  void SendRead(Purpose purpose, Duration timeout);
  void SendWrite(Purpose purpose, const std::optional<Version>& expected, Record record,
                 Duration timeout);
  void OnAnswer(const Op& op, const Answer& answer);
  void NoteStore(const Answer& answer);
  void Observe(const Answer& answer);

  // ---- engine.cc: standby ----
  void OnObserved(const Op& op, const Answer& answer);
  void FailIfHeld();
  std::string WhyNotCompeting() const;
  MonoTime CompeteAt() const;
  void SchedulePoll();

  // ---- engine.cc: acquiring ----
  void Acquire();
  void OnAcquireAnswer(const Op& op, const Answer& answer);
  void OnAcquireRead(const Op& op, const Answer& answer);
  void StartTerm(const Op& op, const Version& version);
  void BackToStandby();
  void Open();

  // ---- engine.cc: holding ----
  void Renew();
  void OnRenewAnswer(const Op& op, const Answer& answer);
  void OnTermRead(const Op& op, const Answer& answer);
  void JudgeAnswer(const Answer& answer);
  void Confirmed(MonoTime sent_at);
  void ScheduleRenewal(MonoTime sent_at);
  void AttemptFailed(const std::string& why);
  void RoundFailed();
  Duration RenewTimeout() const;
  Duration TermReadTimeout() const;
  MonoTime ForcedDrainAt() const;
  void Lose(Reason reason, const std::string& detail);
  bool holding() const { return state_ == State::kActive || state_ == State::kDraining; }

  // ---- engine_release.cc ----
  void BeginDrain(Reason reason);
  void BeginRelease();
  void ReleaseUnopened(Reason reason, const std::string& why);
  void SendRelease();
  void OnReleaseAnswer(const Op& op, const Answer& answer);
  void JudgeRelease(const Answer& answer);
  void RetryRelease(const std::string& why);
  void Released(const std::string& detail);
  void OnHoldOffRecord();
  void EndHoldOff();
  void SettleTakeBack();
  void AnswerByHolder(const std::string& detail);
  void AnswerStepDowns(StepDownDone::Outcome outcome, const std::string& detail);
  void RefuseStepDown(const StepDownRequest& request);
  void Stop(bool ok, const std::string& why);

  // ---- small ----
  Record OwnRecord(RecordState state, uint64_t token) const;
  void SetValve(Valve valve, Reason reason, bool lost);
  void Tell(Notice notice, Reason reason, const std::string& detail = "");
  void TellOf(Notice notice, const Record& record, const std::string& detail);
  Duration Jitter(Duration up_to) { return random_.UpTo(up_to); }
  Duration NextBackoff();

  const Options options_;
  const Identity identity_;
  const Timing timing_;
  std::map<std::string, std::string> peers_;
  base::Random random_;
  Observer observer_;
  Permit permit_;

  // Valid during Step only.
  MonoTime now_;
  Effects* effects_ = nullptr;

  State state_ = State::kStandby;
  std::optional<Op> op_;  // the one store call under way
  uint64_t last_op_ = 0;
  uint64_t last_beat_ = 0;
  uint64_t lost_token_ = 0;  // of the last term that was lost rather than released

  // Standby.
  bool app_ready_ = false;
  bool unready_too_long_ = false;  // told, and not ready since
  bool push_working_ = false;
  MonoTime next_poll_at_;
  MonoTime last_read_sent_at_;
  bool poll_again_ = false;  // an urgent hint came while a read was under way
  MonoTime not_before_;      // back-off after an acquisition that the store failed
  Duration start_backoff_;
  bool sit_out_ = false;     // stepped down with take_back=false: until another process has held
  bool starting_up_ = true;  // fail_if_held still looks
  bool held_at_start_ = false;
  Version held_version_;   // with held_at_start_
  MonoTime look_ends_at_;  // with held_at_start_
  bool exhausted_told_ = false;
  MonoTime
      unchanged_since_;  // when the record that an acquisition replaces was last seen to change
  Op acquire_op_;        // the acquisition that kConfirmAcquire resolves

  // A term: from a confirmed acquisition until loss or release.
  std::optional<Term> term_;
  MonoTime round_end_;
  MonoTime round_fails_at_ = MonoTime::Never();  // nothing fits into the round any more
  MonoTime next_attempt_at_;
  Duration backoff_;
  std::string attempt_error_;  // of the last failed attempt since the last confirmation
  std::string start_error_;    // of the takeover that failed
  int failed_rounds_ = 0;
  bool at_risk_ = false;
  bool awaiting_confirmation_ =
      false;                         // lost time: admissions are held until a renewal is confirmed
  MonoTime confers_nothing_before_;  // answers to requests sent before this confer no permit
  Reason last_reason_ = Reason::kNone;

  // Stepping down.
  Reason drain_reason_ = Reason::kNone;
  MonoTime drain_end_;
  bool drained_ = false;
  bool take_back_ = true;
  bool taking_back_ = false;  // the acquisition under way is the take-back of a step-down
  bool shutting_down_ = false;
  bool watch_on_ = false;  // with shutting_down_: observing goes on after the release
  MonoTime release_give_up_at_;
  MonoTime release_retry_at_;
  MonoTime hold_off_until_;
  std::vector<StepDownRequest> step_downs_;  // waiting for the outcome; bounded by kStepDownsMax
  std::optional<StepDownDone> recorded_;  // the last outcome, for a second request of the same term
  uint64_t released_token_ = 0;

  bool store_ok_ = false;
  int store_failures_ = 0;
  bool store_degraded_ = false;
  MonoTime store_seen_at_;
  std::string last_error_;
};

}  // namespace leasehold::lease
