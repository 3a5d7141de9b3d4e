// The store contract (src/store/contract.md), one test per promise, run against every adapter that
// has a harness. What only one adapter promises is tested beside its harness.
#include <algorithm>
#include <limits>
#include <set>

#include "contract_fixture.h"

namespace leasehold::store_contract {
namespace {

using base::Duration;

// ---- the register ----

TEST_P(ContractTest, WhatWasNeverWrittenIsAbsent) {
  EXPECT_EQ(Word(ReadNow(store_, "orders").outcome), "absent");
}

TEST_P(ContractTest, ARecordIsCreatedWhereThereWasNone) {
  const lease::Record record = SomeRecord("orders");
  const lease::Version version = Create(record);
  const Read read = ReadNow(store_, "orders");
  ASSERT_EQ(Word(read.outcome), "record") << read.error;
  EXPECT_EQ(read.record, record);
  EXPECT_EQ(read.version, version);
  EXPECT_FALSE(read.holder_dead);
}

TEST_P(ContractTest, CreatingWhatIsThereConflictsAndShowsIt) {
  const lease::Record first = SomeRecord("orders");
  const lease::Version version = Create(first);
  const Cas second = CasNow(store_, "orders", std::nullopt, SomeRecord("orders", 2, 2));
  ASSERT_EQ(Word(second.outcome), "conflict") << second.error;
  ASSERT_TRUE(second.record.has_value());
  EXPECT_EQ(*second.record, first);
  EXPECT_EQ(second.version, version);
  EXPECT_FALSE(second.absent);
  EXPECT_EQ(ReadNow(store_, "orders").record, first);
}

TEST_P(ContractTest, TheRightVersionAppliesAndGivesANewOne) {
  const lease::Version first = Create(SomeRecord("orders"));
  const lease::Record renewed = SomeRecord("orders", 1, 2);
  const Cas second = CasNow(store_, "orders", first, renewed);
  ASSERT_EQ(Word(second.outcome), "applied") << second.error;
  EXPECT_NE(second.version, first);
  const Read read = ReadNow(store_, "orders");
  EXPECT_EQ(read.record, renewed);
  EXPECT_EQ(read.version, second.version);
}

TEST_P(ContractTest, AWrongVersionConflictsAndChangesNothing) {
  const lease::Version first = Create(SomeRecord("orders"));
  const lease::Record renewed = SomeRecord("orders", 1, 2);
  ASSERT_EQ(Word(CasNow(store_, "orders", first, renewed).outcome), "applied");
  const Cas late = CasNow(store_, "orders", first, SomeRecord("orders", 5, 3));
  ASSERT_EQ(Word(late.outcome), "conflict") << late.error;
  ASSERT_TRUE(late.record.has_value());
  EXPECT_EQ(*late.record, renewed);
  EXPECT_EQ(ReadNow(store_, "orders").record, renewed);
}

TEST_P(ContractTest, AVersionOfARecordThatIsNotThereConflictsAsAbsent) {
  const lease::Record record = SomeRecord("orders");
  const Cas answer = CasNow(store_, "orders", lease::MakeVersion(record), record);
  ASSERT_EQ(Word(answer.outcome), "conflict") << answer.error;
  EXPECT_TRUE(answer.absent);
  EXPECT_FALSE(answer.record.has_value());
  EXPECT_EQ(Word(ReadNow(store_, "orders").outcome), "absent");
}

TEST_P(ContractTest, AVersionNeverRepeatsThoughTheContentDoes) {
  std::set<lease::Version> seen;
  lease::Version current = Create(SomeRecord("orders", 1, 1));
  seen.insert(current);
  for (uint64_t beat = 2; beat <= 20; ++beat) {  // two contents in turn; only the beat rises
    lease::Record next = SomeRecord("orders", 1, beat);
    if (beat % 2 == 0) next.peers = {{"web", "127.0.0.1:9"}};
    const Cas answer = CasNow(store_, "orders", current, next);
    ASSERT_EQ(Word(answer.outcome), "applied") << answer.error;
    EXPECT_TRUE(seen.insert(answer.version).second) << answer.version << " came twice";
    current = answer.version;
  }
}

TEST_P(ContractTest, TwoProcessesWithTheSameTokenAndBeatDoNotShareAVersion) {
  const lease::Version mine = Create(SomeRecord("orders", 7, 7));
  lease::Record theirs = SomeRecord("orders", 7, 7);
  theirs.process_id = "p-other";
  ASSERT_TRUE(harness_->WriteRecord("contract", "orders", theirs).ok());
  const Cas answer = CasNow(store_, "orders", mine, SomeRecord("orders", 7, 8));
  EXPECT_EQ(Word(answer.outcome), "conflict") << "an old holder's write matched a new record";
}

TEST_P(ContractTest, EveryMemberComesBackAsItWent) {
  lease::Record record = SomeRecord("orders", std::numeric_limits<uint64_t>::max(),
                                    std::numeric_limits<uint64_t>::max() - 1);
  record.ttl_ms = lease::kTtlMillisMax;
  record.state = lease::RecordState::kDraining;
  record.node_id = "node \"\xc3\xa4\" \\ \n {}[]:,";
  record.peers = {{"web", "[::1]:1"}, {"m\xc3\xbcnze", "unix:/run/a b.sock"}, {"x", ""}};
  record.acquired_at_unix_ms = std::numeric_limits<int64_t>::max();
  record.former = lease::MakeFormer(record.token, {"node \xc3\xa4", "p0", 1, true});
  Create(record);
  const Read read = ReadNow(store_, "orders");
  ASSERT_EQ(Word(read.outcome), "record") << read.error;
  EXPECT_EQ(read.record, record);
}

TEST_P(ContractTest, MembersThatWeDoNotKnowSurvive) {
  lease::Record record = SomeRecord("orders");
  record.unknown = {{"future", harness_->UnknownValue()}, {"x-team", harness_->UnknownValue()}};
  ASSERT_TRUE(harness_->WriteRecord("contract", "orders", record).ok());
  const Read first = ReadNow(store_, "orders");
  ASSERT_EQ(Word(first.outcome), "record") << first.error;
  EXPECT_EQ(first.record.unknown, record.unknown);
  lease::Record renewed = first.record;
  renewed.beat += 1;
  ASSERT_EQ(Word(CasNow(store_, "orders", first.version, renewed).outcome), "applied");
  EXPECT_EQ(ReadNow(store_, "orders").record.unknown, record.unknown);
}

TEST_P(ContractTest, AReleasedRecordIsKept) {
  const lease::Version held = Create(SomeRecord("orders", 41, 1));
  lease::Record released = SomeRecord("orders", 41, 2);
  released.state = lease::RecordState::kReleased;
  ASSERT_EQ(Word(CasNow(store_, "orders", held, released).outcome), "applied");
  CloseStore(store_);
  store_ = OpenStore("contract", "p-next");
  const Read read = ReadNow(store_, "orders");
  ASSERT_EQ(Word(read.outcome), "record") << read.error;
  EXPECT_EQ(read.record, released);
}

// ---- names ----

TEST_P(ContractTest, AnyNameIsALease) {
  const std::vector<std::string> names = {
      "orders",
      "team/orders/eu",
      "../../etc/passwd",
      ".",
      "..",
      " ",
      "a b\tc",
      "orders.json",
      "%2F",
      "{orders}",
      "*?[a]",
      "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
      std::string(200, 'n'),
      std::string(199, 'n') + "m",
      std::string(200, '/'),
      std::string(199, '/') + ".",
  };
  uint64_t token = 100;
  for (const std::string& name : names) {
    const Cas made = CasNow(store_, name, std::nullopt, SomeRecord(name, ++token));
    ASSERT_EQ(Word(made.outcome), "applied") << "'" << name << "': " << made.error;
  }
  token = 100;
  for (const std::string& name : names) {
    const Read read = ReadNow(store_, name);
    ASSERT_EQ(Word(read.outcome), "record") << "'" << name << "': " << read.error;
    EXPECT_EQ(read.record.lease, name);
    EXPECT_EQ(read.record.token, ++token) << "'" << name << "' met another lease";
  }
}

TEST_P(ContractTest, TwoLeasesDoNotMeet) {
  Create(SomeRecord("orders", 1));
  EXPECT_EQ(Word(ReadNow(store_, "invoices").outcome), "absent");
  Create(SomeRecord("invoices", 9));
  EXPECT_EQ(ReadNow(store_, "orders").record.token, 1U);
  EXPECT_EQ(ReadNow(store_, "invoices").record.token, 9U);
}

TEST_P(ContractTest, TwoPrefixesDoNotMeet) {
  Store* other = OpenStore("team-b", "p-b");
  Create(SomeRecord("orders", 1));
  EXPECT_EQ(Word(ReadNow(other, "orders").outcome), "absent");
  EXPECT_EQ(Word(CasNow(other, "orders", std::nullopt, SomeRecord("orders", 9)).outcome),
            "applied");
  EXPECT_EQ(ReadNow(store_, "orders").record.token, 1U);
}

TEST_P(ContractTest, PrefixAndNameDoNotRunIntoEachOther) {
  Store* shorter = OpenStore("a", "p-1");
  Store* longer = OpenStore("a.b", "p-2");
  ASSERT_EQ(Word(CasNow(shorter, "b.c", std::nullopt, SomeRecord("b.c")).outcome), "applied");
  ASSERT_EQ(Word(CasNow(shorter, "b:c", std::nullopt, SomeRecord("b:c")).outcome), "applied");
  EXPECT_EQ(Word(ReadNow(longer, "c").outcome), "absent");
  Store* colon = OpenStore("a:b", "p-3");
  EXPECT_EQ(Word(ReadNow(colon, "c").outcome), "absent");
}

// ---- two stores on one register ----

TEST_P(ContractTest, WhatOneWritesTheOtherReadsAtOnce) {
  Store* other = OpenStore("contract", "p-other");
  lease::Version current = Create(SomeRecord("orders"));
  for (uint64_t beat = 2; beat < 20; ++beat) {
    Store* writer = beat % 2 == 0 ? other : store_;
    Store* reader = beat % 2 == 0 ? store_ : other;
    const Cas answer = CasNow(writer, "orders", current, SomeRecord("orders", 1, beat));
    ASSERT_EQ(Word(answer.outcome), "applied") << answer.error;
    current = answer.version;
    const Read read = ReadNow(reader, "orders");
    ASSERT_EQ(Word(read.outcome), "record") << read.error;
    EXPECT_EQ(read.record.beat, beat);
    EXPECT_EQ(read.version, current);
  }
}

TEST_P(ContractTest, OfManyWritesOnOneVersionExactlyOneApplies) {
  Store* other = OpenStore("contract", "p-other");
  const lease::Version start = Create(SomeRecord("orders"));
  constexpr int kWrites = 24;
  int answered = 0;
  int applied = 0;
  for (int i = 0; i < kWrites; ++i) {
    lease::Record record = SomeRecord("orders", 2, static_cast<uint64_t>(i) + 10);
    (i % 2 == 0 ? store_ : other)
        ->CompareAndSet("orders", start, record, kPatience, [&](Cas result) {
          ++answered;
          if (result.outcome == Cas::Outcome::kApplied)
            ++applied;
          else
            EXPECT_EQ(Word(result.outcome), "conflict") << result.error;
        });
  }
  ASSERT_TRUE(RunUntil([&] { return answered == kWrites; }, kPatience * 2));
  EXPECT_EQ(applied, 1);
}

// ---- what must never be overwritten ----

TEST_P(ContractTest, GarbageIsRefusedAndLeftAlone) {
  ASSERT_TRUE(harness_->WriteGarbage("contract", "orders").ok());
  const Read read = ReadNow(store_, "orders");
  EXPECT_EQ(Word(read.outcome), "refused");
  EXPECT_GT(read.error.size(), 20U) << "a sentence, please: " << read.error;
  const Cas create = CasNow(store_, "orders", std::nullopt, SomeRecord("orders"));
  EXPECT_EQ(Word(create.outcome), "refused") << create.error;
  const Cas replace = CasNow(store_, "orders", "p-main/1/1", SomeRecord("orders", 1, 2));
  EXPECT_EQ(Word(replace.outcome), "refused") << replace.error;
  EXPECT_EQ(Word(ReadNow(store_, "orders").outcome), "refused");
}

TEST_P(ContractTest, AHigherFormatIsShownForTheEngineToRefuse) {
  lease::Record record = SomeRecord("orders", 3, 4);
  record.format = lease::kRecordFormat + 1;
  record.unknown = {{"future", harness_->UnknownValue()}};
  ASSERT_TRUE(harness_->WriteRecord("contract", "orders", record).ok());
  const Read read = ReadNow(store_, "orders");
  ASSERT_EQ(Word(read.outcome), "record") << read.error;
  EXPECT_EQ(read.record.format, lease::kRecordFormat + 1);
  EXPECT_FALSE(lease::ValidateRecord(read.record).ok());
}

TEST_P(ContractTest, ATtlOutOfRangeIsShownForTheEngineToRefuse) {
  lease::Record record = SomeRecord("orders", 3, 4);
  record.ttl_ms = 1;
  ASSERT_TRUE(harness_->WriteRecord("contract", "orders", record).ok());
  const Read read = ReadNow(store_, "orders");
  ASSERT_EQ(Word(read.outcome), "record") << read.error;
  EXPECT_EQ(read.record.ttl_ms, 1);
}

// ---- calls and their answers ----

TEST_P(ContractTest, OverlappingCallsAreEachAnsweredOnce) {
  constexpr int kCalls = 40;
  std::vector<int> answers(kCalls, 0);
  int total = 0;
  for (int i = 0; i < kCalls; ++i) {
    const std::string lease = "lease-" + std::to_string(i % 8);
    const auto count = [&answers, &total, i] {
      ++answers[static_cast<size_t>(i)];
      ++total;
    };
    if (i % 3 == 0) {
      store_->CompareAndSet(lease, std::nullopt, SomeRecord(lease), kPatience,
                            [count](const Cas&) { count(); });
    } else if (i % 3 == 1) {
      store_->Read(lease, kPatience, [count](const Read&) { count(); });
    } else {
      store_->ProbeWrite(lease, kPatience, [count](const base::Status&) { count(); });
    }
    EXPECT_EQ(total, 0) << "a callback came from inside the call";
  }
  ASSERT_TRUE(RunUntil([&total] { return total == kCalls; }, kPatience * 2));
  RunFor(Duration::Millis(50));
  for (const int count : answers) EXPECT_EQ(count, 1);
}

TEST_P(ContractTest, ATimeoutOfZeroIsStillAnsweredOnceAndLater) {
  int answers = 0;
  store_->Read("orders", Duration::Zero(), [&answers](const Read&) { ++answers; });
  store_->CompareAndSet("orders", std::nullopt, SomeRecord("orders"), Duration::Zero(),
                        [&answers](const Cas&) { ++answers; });
  store_->ProbeWrite("orders", Duration::Zero(), [&answers](const base::Status&) { ++answers; });
  EXPECT_EQ(answers, 0);
  ASSERT_TRUE(RunUntil([&answers] { return answers == 3; }));
  RunFor(Duration::Millis(100));  // a late finish must not answer again
  EXPECT_EQ(answers, 3);
}

TEST_P(ContractTest, ACallMayStartAnotherFromItsAnswer) {
  bool done = false;
  store_->Read("orders", kCallTimeout, [&](const Read&) {
    store_->CompareAndSet("orders", std::nullopt, SomeRecord("orders"), kCallTimeout,
                          [&](const Cas& result) {
                            EXPECT_EQ(Word(result.outcome), "applied") << result.error;
                            store_->Read("orders", kCallTimeout, [&](const Read& read) {
                              EXPECT_EQ(Word(read.outcome), "record");
                              done = true;
                            });
                          });
  });
  EXPECT_TRUE(RunUntil([&done] { return done; }));
}

TEST_P(ContractTest, CloseAnswersWhatIsOutstandingFirst) {
  int answers = 0;
  bool closed = false;
  for (int i = 0; i < 10; ++i) {
    store_->Read("orders", kCallTimeout, [&](const Read&) {
      EXPECT_FALSE(closed) << "an answer came after Close had called back";
      ++answers;
    });
    store_->CompareAndSet("orders", std::nullopt, SomeRecord("orders"), kCallTimeout,
                          [&](const Cas&) {
                            EXPECT_FALSE(closed) << "an answer came after Close had called back";
                            ++answers;
                          });
  }
  store_->Close([&closed] { closed = true; });
  EXPECT_FALSE(closed);
  ASSERT_TRUE(RunUntil([&closed] { return closed; }));
  EXPECT_EQ(answers, 20);
  std::erase_if(stores_, [this](const auto& owned) { return owned.get() == store_; });
  store_ = nullptr;
  RunFor(Duration::Millis(100));
  EXPECT_EQ(answers, 20);
}

TEST_P(ContractTest, CloseMayDestroyTheStoreFromItsCallback) {
  bool closed = false;
  store_->Read("orders", kCallTimeout, [](const Read&) {});
  store_->Close([this, &closed] {
    std::erase_if(stores_, [this](const auto& owned) { return owned.get() == store_; });
    store_ = nullptr;
    closed = true;
  });
  EXPECT_TRUE(RunUntil([&closed] { return closed; }));
}

TEST_P(ContractTest, AProbeSaysThatWeCouldWriteAndWritesNothing) {
  const base::Status fresh = ProbeNow(store_, "orders");
  EXPECT_TRUE(fresh.ok()) << fresh.error().message;
  EXPECT_EQ(Word(ReadNow(store_, "orders").outcome), "absent");
  const lease::Version version = Create(SomeRecord("orders"));
  EXPECT_TRUE(ProbeNow(store_, "orders").ok());
  EXPECT_EQ(ReadNow(store_, "orders").version, version);
}

TEST_P(ContractTest, StatsCountWhatWasAnswered) {
  const lease::Version version = Create(SomeRecord("orders"));
  CasNow(store_, "orders", "p-x/1/1", SomeRecord("orders", 1, 2));
  ReadNow(store_, "orders");
  const store::StoreStats stats = store_->stats();
  EXPECT_TRUE(stats.connected);
  EXPECT_EQ(stats.operations.at({"cas", "ok"}), 1U);
  EXPECT_EQ(stats.operations.at({"cas", "conflict"}), 1U);
  EXPECT_EQ(stats.operations.at({"read", "ok"}), 1U);
  EXPECT_GT(stats.last_latency, Duration::Zero());
  EXPECT_FALSE(store_->Describe().empty());
}

// ---- hints ----

class HintLog {
 public:
  store::LeaseStore::WatchCallback Callback() {
    return [this](store::WatchEvent event) { kinds_.push_back(event.kind); };
  }
  bool Has(store::WatchEvent::Kind kind) const {
    return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end();
  }
  void Clear() { kinds_.clear(); }

 private:
  std::vector<store::WatchEvent::Kind> kinds_;
};

TEST_P(PushContractTest, AWatcherIsToldWhenTheLeaseChangesHands) {
  Store* other = OpenStore("contract", "p-other");
  const lease::Version held = Create(SomeRecord("orders"));
  HintLog hints;
  other->Watch("orders", hints.Callback());
  ASSERT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kPushUp); }));
  ReadNow(other, "orders");
  hints.Clear();
  lease::Record released = SomeRecord("orders", 1, 2);
  released.state = lease::RecordState::kReleased;
  ASSERT_EQ(Word(CasNow(store_, "orders", held, released).outcome), "applied");
  EXPECT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kChangedHands); }));
}

TEST_P(PushContractTest, AWatcherIsToldOfARecordThatAppears) {
  Store* other = OpenStore("contract", "p-other");
  HintLog hints;
  other->Watch("orders", hints.Callback());
  ASSERT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kPushUp); }));
  Create(SomeRecord("orders"));
  EXPECT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kChangedHands); }));
}

TEST_P(PushContractTest, ARenewalIsABeatNotAChangeOfHands) {
  Store* other = OpenStore("contract", "p-other");
  lease::Version held = Create(SomeRecord("orders"));
  HintLog hints;
  other->Watch("orders", hints.Callback());
  ASSERT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kPushUp); }));
  ReadNow(other, "orders");
  RunFor(Duration::Millis(100));  // what the creation itself brought
  hints.Clear();
  ASSERT_EQ(Word(CasNow(store_, "orders", held, SomeRecord("orders", 1, 2)).outcome), "applied");
  EXPECT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kBeat); }));
  EXPECT_FALSE(hints.Has(store::WatchEvent::Kind::kChangedHands));
}

TEST_P(PushContractTest, AWatcherHearsNothingOfOtherLeases) {
  Store* other = OpenStore("contract", "p-other");
  HintLog hints;
  other->Watch("invoices", hints.Callback());
  ASSERT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kPushUp); }));
  hints.Clear();
  Create(SomeRecord("orders"));
  RunFor(Duration::Millis(200));
  EXPECT_FALSE(hints.Has(store::WatchEvent::Kind::kChangedHands));
  EXPECT_FALSE(hints.Has(store::WatchEvent::Kind::kBeat));
}

// ---- a server that dies, freezes, comes back ----

TEST_P(ServerContractTest, AFrozenServerMakesEveryCallAmbiguousWithinItsTime) {
  const lease::Version version = Create(SomeRecord("orders"));
  ASSERT_TRUE(harness_->Freeze().ok());
  const base::MonoTime start = loop::Loop::Now();
  const Read read = ReadNow(store_, "orders", Duration::Millis(300));
  EXPECT_EQ(Word(read.outcome), "ambiguous");
  EXPECT_FALSE(read.error.empty());
  const Cas cas =
      CasNow(store_, "orders", version, SomeRecord("orders", 1, 2), Duration::Millis(300));
  EXPECT_EQ(Word(cas.outcome), "ambiguous");
  EXPECT_FALSE(cas.error.empty());
  EXPECT_FALSE(ProbeNow(store_, "orders", Duration::Millis(300)).ok());
  EXPECT_LT((loop::Loop::Now() - start).millis(), 3000) << "three calls of 300 ms each";
  ASSERT_TRUE(harness_->Thaw().ok());
  EXPECT_EQ(Word(ReadWhenBack(store_, "orders").outcome), "record");
}

TEST_P(ServerContractTest, AKilledServerMakesCallsAmbiguousAndItsReturnIsFound) {
  const lease::Version version = Create(SomeRecord("orders"));
  ASSERT_TRUE(harness_->Kill().ok());
  const Read read = ReadNow(store_, "orders", Duration::Millis(500));
  EXPECT_EQ(Word(read.outcome), "ambiguous");
  const Cas cas =
      CasNow(store_, "orders", version, SomeRecord("orders", 1, 2), Duration::Millis(500));
  EXPECT_EQ(Word(cas.outcome), "ambiguous");
  EXPECT_FALSE(store_->stats().connected);
  ASSERT_TRUE(harness_->Restart().ok());
  const Read back = ReadWhenBack(store_, "orders");
  EXPECT_NE(Word(back.outcome), "ambiguous") << back.error;
  EXPECT_NE(Word(back.outcome), "refused") << back.error;
}

TEST_P(ServerContractTest, CallsOutstandingWhenTheServerDiesAreAnsweredOnce) {
  Create(SomeRecord("orders"));
  ASSERT_TRUE(harness_->Freeze().ok());
  int answers = 0;
  for (int i = 0; i < 10; ++i) {
    store_->Read("orders", Duration::Seconds(2), [&answers](const Read& read) {
      EXPECT_EQ(Word(read.outcome), "ambiguous");
      ++answers;
    });
  }
  RunFor(Duration::Millis(50));
  ASSERT_TRUE(harness_->Kill().ok());
  ASSERT_TRUE(RunUntil([&answers] { return answers == 10; }, Duration::Seconds(5)));
  RunFor(Duration::Millis(100));
  EXPECT_EQ(answers, 10);
}

TEST_P(ServerContractTest, CloseIsPromptThoughTheServerIsFrozen) {
  ASSERT_TRUE(harness_->Freeze().ok());
  int answers = 0;
  store_->Read("orders", Duration::Seconds(10), [&answers](const Read&) { ++answers; });
  RunFor(Duration::Millis(20));
  const base::MonoTime start = loop::Loop::Now();
  CloseStore(store_);
  EXPECT_EQ(answers, 1);
  EXPECT_LT((loop::Loop::Now() - start).millis(), 2000);
}

TEST_P(ServerContractTest, AStoreMayBeOpenedWhileItsServerIsDown) {
  ASSERT_TRUE(harness_->Kill().ok());
  Store* late = OpenStore("contract", "p-late");  // not an error: leases wait for their store
  EXPECT_EQ(Word(ReadNow(late, "orders", Duration::Millis(500)).outcome), "ambiguous");
  ASSERT_TRUE(harness_->Restart().ok());
  EXPECT_NE(Word(ReadWhenBack(late, "orders").outcome), "ambiguous");
}

TEST_P(ServerPushContractTest, HintsWorkAgainAfterTheServerCameBack) {
  HintLog hints;
  Store* other = OpenStore("contract", "p-other");
  other->Watch("orders", hints.Callback());
  ASSERT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kPushUp); }));
  hints.Clear();
  ASSERT_TRUE(harness_->Kill().ok());
  ASSERT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kPushDown); }));
  hints.Clear();
  ASSERT_TRUE(harness_->Restart().ok());
  ASSERT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kPushUp); }));
  ReadWhenBack(store_, "orders");
  hints.Clear();
  const Read now = ReadNow(store_, "orders");
  std::optional<lease::Version> expected;
  if (now.outcome == Read::Outcome::kRecord) expected = now.version;
  ASSERT_EQ(Word(CasNow(store_, "orders", expected, SomeRecord("orders", 50, 50)).outcome),
            "applied");
  EXPECT_TRUE(RunUntil([&] { return hints.Has(store::WatchEvent::Kind::kChangedHands); }));
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ContractTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PushContractTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ServerContractTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ServerPushContractTest);

}  // namespace leasehold::store_contract
