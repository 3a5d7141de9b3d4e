// LeaseDriver: that every asker is answered, and what people are shown of what the engine does not
// know (clocks, probes).

#include "app/lease_driver.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
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

// What the driver tells a gate that forwards.
class ForwardingGate final : public gate::Gate {
 public:
  explicit ForwardingGate(const std::string& name) {
    options_.name = name;
    options_.standby = gate::StandbyPolicy::kForward;
  }
  base::Status Start() override { return {}; }
  base::Status SetValve(const gate::ValveChange& change) override {
    valve_ = change.valve;
    return {};
  }
  bool empty() const override { return true; }
  gate::GateStatus status() const override { return {}; }
  const gate::Options& options() const override { return options_; }
  std::string advertised() const override { return "10.0.0.1:8081"; }
  void SetPeer(const gate::Peer& peer) override { peers_.push_back(peer); }
  void Leave(base::MonoTime) override { left_ = true; }
  bool gone() const override { return gone_; }

  gate::Options options_;
  lease::Valve valve_ = lease::Valve::kClosed;
  std::vector<gate::Peer> peers_;
  bool left_ = false;
  bool gone_ = false;
};

class ForwardingDriverTest : public LeaseDriverTest {
 protected:
  void SetUp() override {
    LeaseDriverTest::SetUp();
    auto gate = std::make_unique<ForwardingGate>("web");
    gate_ = gate.get();
    driver_->AddGate(std::move(gate));
    other_.lease = "orders";
    other_.node_id = "n2";
    other_.process_id = "p2";
    other_.token = 7;
    other_.beat = 1;
    other_.ttl_ms = 10000;
    other_.peers = {{"web", "10.0.0.2:8081"}};
  }
  const gate::Peer& last() const { return gate_->peers_.back(); }
  bool ReadAgainUntil(const std::function<bool()>& done) {
    driver_->Feed(lease::Hint{true});
    return RunUntil(done);
  }

  ForwardingGate* gate_ = nullptr;
  lease::Record other_;
};

TEST_F(ForwardingDriverTest, ItsRecordsSayWhereItsGatesTakeTheOthersTraffic) {
  driver_->Start();
  Hold();
  EXPECT_EQ(store_.record_->peers, (std::map<std::string, std::string>{{"web", "10.0.0.1:8081"}}));
  EXPECT_TRUE(gate_->peers_.empty()) << "we hold: there is nobody to forward to";
}

TEST_F(ForwardingDriverTest, AStandbysGateIsToldTheHoldersAddressOncePerChange) {
  store_.record_ = other_;
  driver_->Start();
  ASSERT_TRUE(RunUntil([this] { return !gate_->peers_.empty(); }));
  EXPECT_EQ(last().address.ToString(), "10.0.0.2:8081");
  EXPECT_EQ(last().process_id, "p2");
  EXPECT_EQ(last().token, 7u);
  EXPECT_FALSE(last().draining);
  store_.record_->beat = 2;  // a renewal is no news
  store_.record_->state = lease::RecordState::kDraining;
  ASSERT_TRUE(ReadAgainUntil([this] { return last().draining; }));
  EXPECT_EQ(gate_->peers_.size(), 2u);
  store_.record_->beat = 3;
  store_.record_->state = lease::RecordState::kReleased;
  ASSERT_TRUE(ReadAgainUntil([this] { return last().address.empty(); }));
}

TEST_F(ForwardingDriverTest, AnAddressThatIsNoneIsNobodyToForwardTo) {
  for (const char* bad : {"", "nonsense", "10.0.0.2:0", "10.0.0.2:99999", "unix:"}) {
    EXPECT_FALSE(gate_->left_);
    other_.peers = {{"web", bad}};
    ++other_.token;
    store_.record_ = other_;
    const size_t told = gate_->peers_.size();
    if (told == 0) driver_->Start();
    ASSERT_TRUE(ReadAgainUntil([&] { return gate_->peers_.size() > told; })) << bad;
    EXPECT_TRUE(last().address.empty()) << bad;
  }
}

TEST_F(ForwardingDriverTest, AHolderOfAnotherGateOnlyIsNobodyToForwardTo) {
  other_.peers = {{"other", "10.0.0.2:8081"}};
  store_.record_ = other_;
  driver_->Start();
  ASSERT_TRUE(RunUntil([this] { return !gate_->peers_.empty(); }));
  EXPECT_TRUE(last().address.empty());
}

TEST_F(ForwardingDriverTest, WhoLeavesStopsOnlyWhenItsGatesHaveSentAwayWhatTheyHeld) {
  driver_->Start();
  Hold();
  driver_->Leave();
  ASSERT_TRUE(RunUntil([this] { return gate_->left_; }));
  EXPECT_EQ(store_.record_->state, lease::RecordState::kReleased) << "released first";
  EXPECT_FALSE(stopped_);
  other_.token = 2;
  store_.record_ = other_;
  ASSERT_TRUE(ReadAgainUntil([this] { return !gate_->peers_.empty(); }))
      << "it goes on looking for the next holder";
  EXPECT_EQ(last().process_id, "p2");
  gate_->gone_ = true;
  driver_->LookSoon();
  ASSERT_TRUE(RunUntil([this] { return stopped_; }));
}

TEST_F(ForwardingDriverTest, AStandbyThatLeavesWaitsForItsGatesToo) {
  store_.record_ = other_;
  driver_->Start();
  ASSERT_TRUE(RunUntil([this] { return !gate_->peers_.empty(); }));
  driver_->Leave();
  EXPECT_TRUE(gate_->left_);
  EXPECT_FALSE(stopped_);
  gate_->gone_ = true;
  driver_->LookSoon();
  ASSERT_TRUE(RunUntil([this] { return stopped_; }));
}

}  // namespace
}  // namespace leasehold::app
