// LeaseDriver: that every asker is answered, and what people are shown of what the engine does not
// know (clocks, probes).

#include "app/lease_driver.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "lib/loop_fixture.h"

namespace leasehold::app {
namespace {

// One register in memory; every answer comes later, from the loop.
class MemoryStore final : public store::LeaseStore {
 public:
  explicit MemoryStore(loop::Loop& loop) : loop_(loop) {}

  void Open(TroubleCallback, std::function<void(base::Status)> done) override { done({}); }
  void Read(std::string_view, base::Duration, ReadCallback done) override {
    store::ReadResult result;
    result.outcome =
        record_ ? store::ReadResult::Outcome::kRecord : store::ReadResult::Outcome::kAbsent;
    if (record_) {
      result.record = *record_;
      result.version = lease::MakeVersion(*record_);
    }
    if (!unreachable_.empty()) {
      result.outcome = store::ReadResult::Outcome::kRefused;
      result.error = unreachable_;
    }
    loop_.Post([done = std::move(done), result] { done(result); });
  }
  void CompareAndSet(std::string_view, const std::optional<lease::Version>&,
                     const lease::Record& record, base::Duration, CasCallback done) override {
    record_ = record;
    store::CasResult result;
    result.outcome = store::CasResult::Outcome::kApplied;
    result.version = lease::MakeVersion(record);
    loop_.Post([done = std::move(done), result] { done(result); });
  }
  void Watch(std::string_view, WatchCallback) override {}
  void ProbeWrite(std::string_view, base::Duration,
                  std::function<void(base::Status)> done) override {
    loop_.Post([done = std::move(done), status = probe_] { done(status); });
  }
  store::StoreStats stats() const override { return {}; }
  std::string Describe() const override { return "memory"; }
  void Close(std::function<void()> done) override { done(); }

  std::optional<lease::Record> record_;
  base::Status probe_;
  std::string unreachable_;  // reads are refused so

 private:
  loop::Loop& loop_;
};

class LeaseDriverTest : public leasehold::testing::LoopFixture {
 protected:
  void SetUp() override {
    options_.name = "orders";
    LeaseDriver::Host host{loop_, *log_, metrics_, events_, store_, {}, {}, {}, {}, {}};
    host.listeners_drained = [](const std::string&, uint64_t) { return true; };
    host.see_clocks = [](std::optional<int64_t>) {};
    host.proven_dead = [](const std::string&) { return false; };
    host.remember = [](const std::string&, uint64_t, base::Duration) {};
    host.on_stopped = [this](bool, const std::string&) { stopped_ = true; };
    driver_ = std::make_unique<LeaseDriver>(std::move(host), options_, lease::Identity{"n1", "p1"},
                                            1, lease::Memory{});
  }
  void Hold() {
    driver_->Feed(lease::AppState{true});
    ASSERT_TRUE(RunUntil([this] { return driver_->View().may_act; }));
  }

  lease::Options options_;
  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  observe::Metrics metrics_;
  observe::EventBus events_;
  MemoryStore store_{loop_};
  bool stopped_ = false;
  std::unique_ptr<LeaseDriver> driver_;
};

TEST_F(LeaseDriverTest, AStepDownAskedAfterTheLeaseStoppedIsAnswered) {
  driver_->Start();
  Hold();
  driver_->Feed(lease::Shutdown{});
  ASSERT_TRUE(RunUntil([this] { return stopped_; }));
  std::optional<lease::StepDownDone> answer;
  driver_->StepDown({"orders", {"n1", 1}, true},
                    [&](const lease::StepDownDone& done) { answer = done; });
  EXPECT_FALSE(answer.has_value()) << "never from inside the call";
  ASSERT_TRUE(RunUntil([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->outcome, lease::StepDownDone::Outcome::kUnknown);
  EXPECT_EQ(answer->expected.token, 1u);
  EXPECT_FALSE(answer->detail.empty());
}

TEST_F(LeaseDriverTest, AHolderShowsWhenItAcquiredTheLease) {
  driver_->Start();
  Hold();
  const admin::LeaseView view = driver_->View();
  ASSERT_TRUE(view.view.seen.has_value());
  EXPECT_GT(view.view.seen->acquired_at_unix_ms, 0);
  EXPECT_EQ(view.view.seen->acquired_at_unix_ms, store_.record_->acquired_at_unix_ms);
}

TEST_F(LeaseDriverTest, AStoreThatRefusesTheProbeIsTroubleOfAStandby) {
  store_.probe_ = base::Error{base::ErrorCode::kRefused, "store_full: its memory is full"};
  driver_->Start();
  ASSERT_TRUE(RunUntil([this] { return !driver_->write_trouble().empty(); }));
  EXPECT_EQ(driver_->write_trouble(), "store_full: its memory is full");
}

TEST_F(LeaseDriverTest, AStoreThatRefusesTheLeasesCallsIsTroubleUntilItAnswers) {
  store_.unreachable_ = "the directory must exist";
  driver_->Start();
  driver_->Feed(lease::AppState{true});
  ASSERT_TRUE(RunUntil([this] { return !driver_->store_trouble().empty(); }));
  EXPECT_EQ(driver_->store_trouble(), "the directory must exist");
  store_.unreachable_.clear();
  ASSERT_TRUE(RunUntil([this] { return driver_->store_trouble().empty(); }));
}

}  // namespace
}  // namespace leasehold::app
