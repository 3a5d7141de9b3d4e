// The redis adapter against a server of the test's own that breaks the protocol or the connection
// in ways a real one is hard to bring to.
#include "redis_fixture.h"

namespace leasehold::store {
namespace {

using base::Duration;
using base::MonoTime;
using loop::Loop;

class RedisFaultTest : public RedisFixture {
 protected:
  LeaseStore* OpenFake(const FakeRedis& fake, const std::function<void(RedisTuning&)>& tune = {}) {
    RedisOptions options;
    options.url = fake.url();
    RedisTuning tuning = TuningOf(options);
    if (tune) tune(tuning);
    LeaseStore* store = Make(options, tuning);
    EXPECT_TRUE(OpenNow(store).ok());
    return store;
  }
};

TEST_F(RedisFaultTest, AServerKilledInMidReplyAThousandTimesIsAThousandAmbiguousAnswers) {
  const std::string record = "*2\r\n$7\r\napplied\r\n$5\r\n";  // never whole
  size_t cut = 0;
  FakeRedis fake(loop_, [&](std::string_view) {
    cut = (cut + 1) % record.size();
    return record.substr(0, cut) + "\x04";
  });
  LeaseStore* store = OpenFake(fake, [](RedisTuning& tuning) {
    tuning.backoff_first = Duration::Micros(10);
    tuning.backoff_max = Duration::Micros(10);
  });
  for (uint64_t i = 1; i <= 1000; ++i) {
    const CasResult made = CasNow(store, std::nullopt, Beat(i));
    ASSERT_EQ(made.outcome, Cas::kAmbiguous) << i;
    ASSERT_FALSE(made.error.empty());
  }
  EXPECT_GE(fake.accepted(), 1000);
  EXPECT_EQ(store->stats().operations.at({"cas", "ambiguous"}), 1000U);
}

TEST_F(RedisFaultTest, ALoadingServerIsAmbiguous) {
  FakeRedis fake(loop_, [](std::string_view) {
    return "-LOADING Redis is loading the dataset in memory\r\n";
  });
  LeaseStore* store = OpenFake(fake);
  const CasResult made = CasNow(store, std::nullopt, Beat(1));
  EXPECT_EQ(made.outcome, Cas::kAmbiguous);
  EXPECT_NE(made.error.find("LOADING"), std::string::npos) << made.error;
  EXPECT_EQ(ReadNow(store).outcome, Read::kAmbiguous);
}

TEST_F(RedisFaultTest, AnUnknownErrorIsAmbiguous) {
  FakeRedis fake(loop_, [](std::string_view) { return "-WHATEVER 42\r\n"; });
  EXPECT_EQ(CasNow(OpenFake(fake), std::nullopt, Beat(1)).outcome, Cas::kAmbiguous);
}

TEST_F(RedisFaultTest, NoscriptForEverIsAskedTwiceAndNoMore) {
  int asked = 0;
  FakeRedis fake(loop_, [&](std::string_view) {
    ++asked;
    return "-NOSCRIPT No matching script\r\n";
  });
  EXPECT_EQ(CasNow(OpenFake(fake), std::nullopt, Beat(1)).outcome, Cas::kAmbiguous);
  EXPECT_EQ(asked, 2);
}

TEST_F(RedisFaultTest, GarbageIsAnAmbiguousAnswerThatSaysSo) {
  FakeRedis fake(loop_, [](std::string_view) { return "HTTP/1.1 400 Bad Request\r\n\r\n"; });
  const ReadResult read = ReadNow(OpenFake(fake));
  EXPECT_EQ(read.outcome, Read::kAmbiguous);
  EXPECT_NE(read.error.find("not a RESP2 reply"), std::string::npos) << read.error;
}

TEST_F(RedisFaultTest, AReplyOfTheWrongShapeIsAmbiguous) {
  for (const char* reply : {"+OK\r\n", ":1\r\n", "$-1\r\n", "*1\r\n$8\r\nconflict\r\n",
                            "*1\r\n*0\r\n", "*2\r\n$5\r\nother\r\n*0\r\n"}) {
    FakeRedis fake(loop_, [reply](std::string_view) { return std::string(reply); });
    LeaseStore* store = OpenFake(fake);
    const CasResult made = CasNow(store, std::nullopt, Beat(1));
    EXPECT_EQ(made.outcome, Cas::kAmbiguous) << reply << ": " << made.error;
    Close(store);
  }
}

TEST_F(RedisFaultTest, AnEndlessReplyIsCutOffAndSaysSo) {
  std::string endless = "$900000000\r\n" + std::string(3 * 1024 * 1024, 'x');
  FakeRedis fake(loop_, [&](std::string_view) { return endless; });
  const ReadResult read = ReadNow(OpenFake(fake));
  EXPECT_EQ(read.outcome, Read::kAmbiguous);
  EXPECT_NE(read.error.find("1MiB"), std::string::npos) << read.error;
}

TEST_F(RedisFaultTest, AHugeOrDeepArrayIsRefusedAtItsHead) {
  for (const char* reply : {"*2000000000\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"}) {
    FakeRedis fake(loop_, [reply](std::string_view) { return std::string(reply); });
    LeaseStore* store = OpenFake(fake);
    const ReadResult read = ReadNow(store);
    EXPECT_EQ(read.outcome, Read::kAmbiguous);
    EXPECT_NE(read.error.find("not a reply we can take"), std::string::npos) << read.error;
    Close(store);
  }
}

TEST_F(RedisFaultTest, AnAnswerTooManyClosesTheConnection) {
  FakeRedis fake(loop_, [](std::string_view) { return "*0\r\n*0\r\n"; });
  LeaseStore* store = OpenFake(fake);
  EXPECT_EQ(ReadNow(store).outcome, Read::kAbsent);
  EXPECT_TRUE(RunUntil([&] { return fake.accepted() >= 2; })) << "replies would be out of step";
}

TEST_F(RedisFaultTest, ALateAnswerIsNeverTakenForTheNextCalls) {
  // The first call's answer comes only after its deadline: dropped by its place in the order.
  int asked = 0;
  FakeRedis fake(loop_, [&](std::string_view) {
    return ++asked == 1 ? std::string() : std::string("*1\r\n$7\r\napplied\r\n*0\r\n");
  });
  LeaseStore* store = OpenFake(fake);
  EXPECT_EQ(CasNow(store, std::nullopt, Beat(1), Duration::Millis(100)).outcome, Cas::kAmbiguous);
  EXPECT_EQ(ReadNow(store).outcome, Read::kAbsent);
  EXPECT_EQ(fake.accepted(), 1) << "a slow answer costs one call, not the connection";
}

TEST_F(RedisFaultTest, ALateAnswerAfterAQuietTimeCostsOneCallToo) {
  int asked = 0;
  FakeRedis fake(loop_, [&](std::string_view) {
    return ++asked == 1 ? std::string() : std::string("*1\r\n$7\r\napplied\r\n*0\r\n");
  });
  LeaseStore* store = OpenFake(fake);
  const base::MonoTime quiet_until = loop::Loop::Now() + Duration::Millis(250);
  ASSERT_TRUE(RunUntil([&] { return loop::Loop::Now() > quiet_until; }));
  // The quiet time is no sign of death: nothing was asked in it.
  EXPECT_EQ(CasNow(store, std::nullopt, Beat(1), Duration::Millis(100)).outcome, Cas::kAmbiguous);
  EXPECT_EQ(ReadNow(store).outcome, Read::kAbsent);
  EXPECT_EQ(fake.accepted(), 1);
}

TEST_F(RedisFaultTest, AGreetingThatNeverEndsIsAConnectTimeout) {
  FakeRedis fake(loop_, [](std::string_view) { return ""; });
  fake.greeting = "$30\r\nmaxmem";
  const MonoTime start = Loop::Now();
  LeaseStore* store =
      OpenFake(fake, [](RedisTuning& tuning) { tuning.connect_timeout = Duration::Millis(200); });
  EXPECT_GE(Loop::Now() - start, Duration::Millis(199));
  EXPECT_LT(Loop::Now() - start, Duration::Seconds(1));
  const ReadResult read = ReadNow(store, Duration::Millis(700));
  EXPECT_EQ(read.outcome, Read::kAmbiguous);
  EXPECT_NE(read.error.find("connect_timeout"), std::string::npos) << read.error;
}

TEST_F(RedisFaultTest, ProtectedModeIsRefusedAndAFullServerIsNot) {
  FakeRedis fake(loop_, [](std::string_view) { return ""; });
  fake.greeting = "-DENIED Redis is running in protected mode because ...\r\n\x04";
  EXPECT_EQ(ReadNow(OpenFake(fake), Duration::Seconds(1)).outcome, Read::kRefused);
  FakeRedis full(loop_, [](std::string_view) { return ""; });
  full.greeting = "-ERR max number of clients reached\r\n\x04";
  const ReadResult read = ReadNow(OpenFake(full), Duration::Seconds(1));
  EXPECT_EQ(read.outcome, Read::kAmbiguous);
  EXPECT_NE(read.error.find("max number of clients"), std::string::npos) << read.error;
}

TEST_F(RedisFaultTest, AServerThatAcceptsAndClosesIsNotHammered) {
  FakeRedis fake(loop_, [](std::string_view) { return ""; });
  fake.greeting = "\x04";
  OpenFake(fake);
  RunFor(Duration::Seconds(1));
  EXPECT_LE(fake.accepted(), 12) << "back-off: 0, 25, 50, 100, 200, 400, 500 ms, half of it random";
  EXPECT_GE(fake.accepted(), 3);
}

}  // namespace
}  // namespace leasehold::store
