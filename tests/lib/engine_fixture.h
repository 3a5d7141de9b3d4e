// EngineFixture: one real engine on a clock the test moves, with the store's answers given by hand.
// Effects are taken off one by one: Expect...() fails when the next effect of that kind is not
// there.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lease/engine.h"
#include "lease/trace.h"

namespace leasehold::test {

using base::Duration;
using base::MonoTime;
using namespace lease;  // NOLINT: a test fixture speaks the engine's words

class EngineFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.name = "orders";
    options_.ttl = Duration::Seconds(10);
  }

  void Make(Memory memory = {}) {
    engine_ = std::make_unique<Engine>(options_, Identity{"n1", "p1"}, 1, now_, memory);
    engine_effects_.clear();
  }
  // An engine with a ready application that has been asked to look.
  void Start(Memory memory = {}) {
    Make(memory);
    Feed(AppState{true});
  }

  void Feed(const Event& event) { engine_->Step(now_, event, engine_effects_); }
  void Advance(Duration d) { now_ = now_ + d; }
  // Moves the clock to each deadline in turn until `until` (ticking), answering nothing.
  void TickUntil(MonoTime until) {
    while (engine_->NextDeadline() <= until) {
      now_ = Max(now_, engine_->NextDeadline());
      Feed(Tick{});
    }
    now_ = until;
    Feed(Tick{});
  }
  void TickFor(Duration d) { TickUntil(now_ + d); }
  // To the engine's own next deadline.
  void TickNext() {
    ASSERT_FALSE(engine_->NextDeadline().is_never());
    TickUntil(Max(now_, engine_->NextDeadline()));
  }

  template <typename T>
  std::optional<T> Take() {  // the first effect of this kind, removed
    for (size_t i = 0; i < engine_effects_.size(); ++i) {
      if (const T* effect = std::get_if<T>(&engine_effects_[i])) {
        T taken = *effect;
        engine_effects_.erase(engine_effects_.begin() + static_cast<std::ptrdiff_t>(i));
        return taken;
      }
    }
    return std::nullopt;
  }
  // The store call under way: the last one sent; those before it have timed out and are dropped.
  template <typename T>
  T MustLast() {
    T last = Must<T>();
    while (std::optional<T> later = Take<T>()) last = *later;
    return last;
  }
  template <typename T>
  T Must() {
    std::optional<T> effect = Take<T>();
    EXPECT_TRUE(effect.has_value()) << "no such effect; there are:\n" << Effects();
    return effect.value_or(T{});
  }
  template <typename T>
  bool None() {
    for (const Effect& effect : engine_effects_) {
      if (std::get_if<T>(&effect) != nullptr) return false;
    }
    return true;
  }
  bool Told(Notice notice, Reason reason = Reason::kNone) {
    for (const Effect& effect : engine_effects_) {
      const auto* told = std::get_if<NoticeEffect>(&effect);
      if (told != nullptr && told->notice == notice &&
          (reason == Reason::kNone || told->reason == reason)) {
        return true;
      }
    }
    return false;
  }
  std::string Effects() const {
    std::string text;
    for (const Effect& effect : engine_effects_) text += EffectText(effect) + "\n";
    return text;
  }
  void Forget() { engine_effects_.clear(); }

  // ---- answers ----
  void AnswerAbsent() {
    Feed(ReadAnswer{MustLast<ReadEffect>().op, ReadAnswer::Outcome::kAbsent, {}, {}, false, ""});
  }
  void AnswerRecord(const Record& record, bool holder_dead = false) {
    Feed(ReadAnswer{MustLast<ReadEffect>().op, ReadAnswer::Outcome::kRecord, record,
                    MakeVersion(record), holder_dead, ""});
  }
  void AnswerReadFailed() {
    Feed(ReadAnswer{
        MustLast<ReadEffect>().op, ReadAnswer::Outcome::kAmbiguous, {}, {}, false, "no answer"});
  }
  CasEffect AnswerApplied() {
    CasEffect cas = MustLast<CasEffect>();
    Feed(CasAnswer{cas.op, CasAnswer::Outcome::kApplied, MakeVersion(cas.record), {}, false, ""});
    return cas;
  }
  CasEffect AnswerConflict(const Record& current) {
    CasEffect cas = MustLast<CasEffect>();
    Feed(
        CasAnswer{cas.op, CasAnswer::Outcome::kConflict, MakeVersion(current), current, false, ""});
    return cas;
  }
  CasEffect AnswerConflictAbsent() {
    CasEffect cas = MustLast<CasEffect>();
    Feed(CasAnswer{cas.op, CasAnswer::Outcome::kConflict, {}, {}, true, ""});
    return cas;
  }
  CasEffect AnswerConflictBlind() {
    CasEffect cas = MustLast<CasEffect>();
    Feed(CasAnswer{cas.op, CasAnswer::Outcome::kConflict, {}, {}, false, ""});
    return cas;
  }
  CasEffect AnswerAmbiguous() {
    CasEffect cas = MustLast<CasEffect>();
    Feed(CasAnswer{cas.op, CasAnswer::Outcome::kAmbiguous, {}, {}, false, "no answer"});
    return cas;
  }
  CasEffect AnswerRefused(const std::string& why) {
    CasEffect cas = MustLast<CasEffect>();
    Feed(CasAnswer{cas.op, CasAnswer::Outcome::kRefused, {}, {}, false, why});
    return cas;
  }

  // ---- situations ----
  static Record Other(uint64_t token, uint64_t beat, Duration ttl = Duration::Seconds(10)) {
    Record record;
    record.lease = "orders";
    record.node_id = "n2";
    record.process_id = "p2";
    record.token = token;
    record.beat = beat;
    record.ttl_ms = ttl.millis();
    return record;
  }
  // Starts on an empty store and holds token 1; `sent_at_` is when the acquisition was sent.
  void Hold() {
    Start();
    AnswerAbsent();
    sent_at_ = now_;
    last_write_ = AnswerApplied().record;
    ASSERT_EQ(state(), State::kActive) << Effects();
    Forget();
  }
  // Ticks to the next renewal's sending; leaves its effect in place.
  void TickToRenewal() {
    while (None<CasEffect>()) TickNext();
    sent_at_ = now_;
  }
  void RenewOnce() {
    TickToRenewal();
    last_write_ = AnswerApplied().record;
    Forget();
  }

  State state() const { return engine_->view().state; }
  bool MayAct() const { return engine_->permit().MayAct(now_); }
  bool MayAdmit() const { return engine_->permit().MayAdmit(now_); }
  const Timing& timing() const { return engine_->timing(); }

  lease::Options options_;
  MonoTime now_ = MonoTime::FromNanos(1'000'000'000'000);
  MonoTime sent_at_;
  Record last_write_;
  std::unique_ptr<Engine> engine_;
  lease::Effects engine_effects_;
};

}  // namespace leasehold::test
