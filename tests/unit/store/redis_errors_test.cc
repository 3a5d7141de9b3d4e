// A real redis-server that refuses: full, read-only, broken disk, wrong password, missing
// permissions, a busy script, evicting policies. Each answer has its class, and repair is found.
#include <filesystem>
#include <fstream>

#include "redis_fixture.h"
#include "store/redis_record.h"

namespace leasehold::store {
namespace {

using base::Duration;

class RedisErrorTest : public RedisFixture {
 protected:
  lease::Version Held(LeaseStore* store) {
    const CasResult made = CasNow(store, std::nullopt, Beat(1));
    EXPECT_EQ(made.outcome, Cas::kApplied) << made.error;
    return made.version;
  }
  void WriteFile(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  // What the README must list: the smallest ACL the adapter works with.
  base::Status MinimalUser(const std::string& more = "") {
    std::vector<std::string> words = {
        "ACL",          "SETUSER",    "orders",    "on",    ">pw",      "resetkeys",
        "~t:lease:*",   "~t:probe:*", "&t:hint:*", "-@all", "+eval",    "+evalsha",
        "+script|load", "+hgetall",   "+hset",     "+hdel", "+persist", "+publish",
        "+subscribe",   "+ping",      "+set",      "+info", "+select",  "+wait"};
    if (!more.empty()) words.push_back(more);
    return Do(words);
  }
};

TEST_F(RedisErrorTest, FullMemoryLetsAHolderRenewAndRefusesNewRecords) {
  Server();
  LeaseStore* store = Opened(Options());
  const lease::Version held = Held(store);
  ASSERT_TRUE(Do({"CONFIG", "SET", "maxmemory", "1"}).ok());
  const CasResult renewed = CasNow(store, held, Beat(2));
  EXPECT_EQ(renewed.outcome, Cas::kApplied) << "a holder must stay: " << renewed.error;
  const base::Status probe = ProbeNow(store);
  ASSERT_FALSE(probe.ok());
  EXPECT_EQ(probe.error().code, base::ErrorCode::kRefused);
  EXPECT_TRUE(probe.error().message.starts_with("store_full: ")) << probe.error().message;
  ASSERT_TRUE(Do({"DEL", NamesOf("t", "orders").key}).ok());
  const CasResult created = CasNow(store, std::nullopt, Beat(3));
  EXPECT_EQ(created.outcome, Cas::kRefused) << created.error;
  EXPECT_TRUE(created.error.starts_with("store_full: ")) << created.error;
  ASSERT_TRUE(Do({"CONFIG", "SET", "maxmemory", "0"}).ok());
  EXPECT_TRUE(ProbeNow(store).ok());
  EXPECT_EQ(CasNow(store, std::nullopt, Beat(4)).outcome, Cas::kApplied);
}

TEST_F(RedisErrorTest, ADiskThatCannotSaveIsRefusedAndReadsStillWork) {
  Server();
  LeaseStore* store = Opened(Options());
  const lease::Version held = Held(store);
  // A directory in the dump's place: the save's rename fails, for root too.
  std::filesystem::create_directories(server_->dir() + "/dump.rdb/full");
  ASSERT_TRUE(Do({"CONFIG", "SET", "save", "3600 1"}).ok());
  ASSERT_TRUE(Do({"BGSAVE"}).ok());
  ASSERT_TRUE(RunUntil([&] {
    return server_->Command({"INFO", "persistence"})->text().find("rdb_last_bgsave_status:err") !=
           std::string::npos;
  }));
  const CasResult renewed = CasNow(store, held, Beat(2));
  EXPECT_EQ(renewed.outcome, Cas::kRefused) << renewed.error;
  EXPECT_NE(renewed.error.find("MISCONF"), std::string::npos) << renewed.error;
  EXPECT_TRUE(ProbeNow(store).error().message.starts_with("store_full: "));
  EXPECT_EQ(ReadNow(store).outcome, Read::kRecord);
  ASSERT_TRUE(Do({"CONFIG", "SET", "stop-writes-on-bgsave-error", "no"}).ok());
  EXPECT_EQ(CasNow(store, held, Beat(3)).outcome, Cas::kApplied);
}

TEST_F(RedisErrorTest, AReplicaAnswersNothingAndItsPromotionIsFound) {
  Server();
  LeaseStore* store = Opened(Options());
  const lease::Version held = Held(store);
  ASSERT_TRUE(Do({"REPLICAOF", "127.0.0.1", "1"}).ok());
  const CasResult renewed = CasNow(store, held, Beat(2));
  EXPECT_EQ(renewed.outcome, Cas::kAmbiguous) << renewed.error;
  EXPECT_NE(renewed.error.find("READONLY"), std::string::npos) << renewed.error;
  const ReadResult read = ReadNow(store);
  EXPECT_EQ(read.outcome, Read::kAmbiguous) << "a replica may be behind: " << read.error;
  EXPECT_EQ(ProbeNow(store).error().code, base::ErrorCode::kUnavailable);
  ASSERT_TRUE(Do({"REPLICAOF", "NO", "ONE"}).ok());
  EXPECT_EQ(CasUntilApplied(store, held, Beat(3)).outcome, Cas::kApplied);
  EXPECT_GE(store->stats().operations.at({"connect", "ok"}), 2U) << "the name is resolved again";
}

TEST_F(RedisErrorTest, ABusyServerIsAmbiguousUntilItsScriptEnds) {
  Server({.args = {"--lua-time-limit", "10"}});
  LeaseStore* store = Opened(Options());
  const lease::Version held = Held(store);
  const std::shared_ptr<void> busy = server_->StartCommand({"EVAL", "while true do end", "0"});
  ASSERT_TRUE(RunUntil([&] { return server_->Command({"PING"})->text().starts_with("BUSY"); }));
  const CasResult renewed = CasNow(store, held, Beat(2), Duration::Millis(500));
  EXPECT_EQ(renewed.outcome, Cas::kAmbiguous);
  EXPECT_NE(renewed.error.find("BUSY"), std::string::npos) << renewed.error;
  ASSERT_TRUE(Do({"SCRIPT", "KILL"}).ok());
  EXPECT_EQ(CasUntilApplied(store, held, Beat(3)).outcome, Cas::kApplied);
}

TEST_F(RedisErrorTest, FlushedScriptsAreGivenAgainInTheSameCall) {
  Server();
  LeaseStore* store = Opened(Options());
  lease::Version held = Held(store);
  for (uint64_t beat = 2; beat < 6; ++beat) {
    ASSERT_TRUE(Do({"SCRIPT", "FLUSH"}).ok());
    const CasResult renewed = CasNow(store, held, Beat(beat));
    ASSERT_EQ(renewed.outcome, Cas::kApplied) << renewed.error;
    held = renewed.version;
    ASSERT_TRUE(Do({"SCRIPT", "FLUSH"}).ok());
    EXPECT_EQ(ReadNow(store).record.beat, beat);
  }
}

TEST_F(RedisErrorTest, TheSmallestAclWorks) {
  Server();
  ASSERT_TRUE(MinimalUser().ok());
  RedisOptions options = Options();
  options.username = "orders";
  options.password = "pw";
  options.url += "/1";
  options.wait_replicas = 0;
  LeaseStore* store = Opened(options);
  bool up = false;
  store->Watch("orders", [&](WatchEvent e) { up |= e.kind == WatchEvent::Kind::kPushUp; });
  ASSERT_TRUE(RunUntil([&] { return up; }));
  const lease::Version held = Held(store);
  lease::Record moved = Beat(2);
  moved.peers.clear();  // needs HDEL
  EXPECT_EQ(CasNow(store, held, moved).outcome, Cas::kApplied);
  const ReadResult read = ReadNow(store);
  EXPECT_EQ(read.record, moved) << read.error;
  EXPECT_TRUE(ProbeNow(store).ok());
  EXPECT_TRUE(troubles_.empty()) << std::get<2>(troubles_[0]);
}

TEST_F(RedisErrorTest, AMissingPermissionIsRefusedAndItsGrantIsFound) {
  Server();
  ASSERT_TRUE(MinimalUser("-hset").ok());
  RedisOptions options = Options();
  options.url = "redis://orders:pw@127.0.0.1:" + std::to_string(server_->port());
  LeaseStore* store = Opened(options);
  const CasResult made = CasNow(store, std::nullopt, Beat(1));
  EXPECT_EQ(made.outcome, Cas::kRefused) << made.error;
  EXPECT_NE(made.error.find("permission"), std::string::npos) << made.error;
  ASSERT_TRUE(MinimalUser().ok());
  EXPECT_EQ(CasNow(store, std::nullopt, Beat(2)).outcome, Cas::kApplied);
}

TEST_F(RedisErrorTest, WithoutInfoAndScriptLoadAWarningIsGivenAndAllWorks) {
  Server();
  ASSERT_TRUE(MinimalUser("-info").ok());
  ASSERT_TRUE(Do({"ACL", "SETUSER", "orders", "-script|load"}).ok());
  RedisOptions options = Options();
  options.url = "redis://orders:pw@127.0.0.1:" + std::to_string(server_->port());
  LeaseStore* store = Opened(options);
  EXPECT_TRUE(RunUntil([&] { return InTrouble("eviction"); }));
  const lease::Version held = Held(store);
  EXPECT_EQ(CasNow(store, held, Beat(2)).outcome, Cas::kApplied);
}

TEST_F(RedisErrorTest, WithoutTheChannelThereAreNoHintsAndAWarning) {
  Server();
  ASSERT_TRUE(MinimalUser("resetchannels").ok());
  RedisOptions options = Options();
  options.url = "redis://orders:pw@127.0.0.1:" + std::to_string(server_->port());
  LeaseStore* store = Opened(options);
  int hints = 0;
  store->Watch("orders", [&](WatchEvent) { ++hints; });
  EXPECT_TRUE(RunUntil([&] { return InTrouble("push"); }));
  Held(store);
  EXPECT_EQ(hints, 0);
}

TEST_F(RedisErrorTest, AWrongPasswordIsTroubleAndItsRepairIsFoundWithoutRestart) {
  Server({.args = {"--requirepass", "right"}}).SetAuth("default", "right");
  RedisOptions options = Options();
  options.password_file = server_->dir() + "/password";
  WriteFile(options.password_file, "wrong\n");
  LeaseStore* store = Make(options);
  EXPECT_TRUE(OpenNow(store).ok()) << "credentials may be repaired";
  EXPECT_TRUE(RunUntil([&] { return InTrouble("access"); }));
  const CasResult made = CasNow(store, std::nullopt, Beat(1), Duration::Millis(900));
  EXPECT_EQ(made.outcome, Cas::kRefused) << made.error;
  EXPECT_NE(made.error.find("redis.password_file"), std::string::npos) << made.error;
  EXPECT_EQ(made.error.find("right"), std::string::npos) << "no secret in a message";
  WriteFile(options.password_file, "right\n");
  ASSERT_TRUE(RunUntil([&] { return store->stats().connected; }));
  EXPECT_EQ(CasNow(store, std::nullopt, Beat(2)).outcome, Cas::kApplied);
  EXPECT_FALSE(InTrouble("access"));
}

TEST_F(RedisErrorTest, NoPasswordWhereOneIsWantedIsRefused) {
  Server({.args = {"--requirepass", "right"}}).SetAuth("default", "right");
  LeaseStore* store = Make(Options());
  EXPECT_TRUE(OpenNow(store).ok());
  const ReadResult read = ReadNow(store, Duration::Seconds(1));
  EXPECT_EQ(read.outcome, Read::kRefused);
  EXPECT_NE(read.error.find("NOAUTH"), std::string::npos) << read.error;
}

TEST_F(RedisErrorTest, APasswordWhereNoneIsSetIsRefused) {
  RedisOptions options = Options();
  options.username = "nobody";
  options.password = "x";
  LeaseStore* store = Make(options);
  EXPECT_TRUE(OpenNow(store).ok());
  EXPECT_EQ(ReadNow(store, Duration::Seconds(1)).outcome, Read::kRefused);
}

TEST_F(RedisErrorTest, AMissingPasswordFileIsRefusedByName) {
  RedisOptions options = Options();
  options.password_file = "/nonexistent/password";
  LeaseStore* store = Make(options);
  EXPECT_TRUE(OpenNow(store).ok());
  const ReadResult read = ReadNow(store, Duration::Seconds(1));
  EXPECT_EQ(read.outcome, Read::kRefused);
  EXPECT_NE(read.error.find("/nonexistent/password"), std::string::npos) << read.error;
}

TEST_F(RedisErrorTest, ADatabaseThatIsNotThereIsRefused) {
  RedisOptions options = Options();
  options.url += "/99";
  LeaseStore* store = Make(options);
  EXPECT_TRUE(OpenNow(store).ok());
  const ReadResult read = ReadNow(store, Duration::Seconds(1));
  EXPECT_EQ(read.outcome, Read::kRefused);
  EXPECT_NE(read.error.find("redis.url"), std::string::npos) << read.error;
}

// ---- eviction ----

TEST_F(RedisErrorTest, APolicyThatEvictsLeasesStopsTheStart) {
  Server({.args = {"--maxmemory-policy", "allkeys-lru"}});
  const base::Status opened = OpenNow(Make(Options()));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, base::ErrorCode::kRefused);
  EXPECT_NE(opened.error().message.find("allkeys-lru"), std::string::npos);
  EXPECT_NE(opened.error().message.find("noeviction"), std::string::npos);
}

TEST_F(RedisErrorTest, AnAcceptedPolicyIsAWarning) {
  Server({.args = {"--maxmemory-policy", "allkeys-lru"}});
  RedisOptions options = Options();
  options.allow_eviction = true;
  LeaseStore* store = Opened(options);
  EXPECT_TRUE(RunUntil([&] { return InTrouble("eviction"); }));
  Held(store);
}

TEST_F(RedisErrorTest, APolicyThatChangesLaterIsTroubleAndNoStop) {
  RedisOptions options = Options();
  RedisTuning tuning = TuningOf(options);
  tuning.policy_interval = Duration::Millis(20);
  LeaseStore* store = Make(options, tuning);
  ASSERT_TRUE(OpenNow(store).ok());
  const lease::Version held = Held(store);
  ASSERT_TRUE(Do({"CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"}).ok());
  EXPECT_TRUE(RunUntil([&] { return InTrouble("eviction"); }));
  EXPECT_EQ(CasNow(store, held, Beat(2)).outcome, Cas::kApplied) << "a holder is not stopped";
  ASSERT_TRUE(Do({"CONFIG", "SET", "maxmemory-policy", "noeviction"}).ok());
  EXPECT_TRUE(RunUntil([&] { return !InTrouble("eviction"); }));
}

TEST_F(RedisErrorTest, APolicySeenOnlyAfterALateConnectRefusesWritesUntilRepaired) {
  Server({.args = {"--maxmemory-policy", "allkeys-lru"}});
  ASSERT_TRUE(server_->Kill9().ok());
  RedisOptions options = Options();
  RedisTuning tuning = TuningOf(options);
  tuning.policy_interval_blocked = Duration::Millis(20);
  LeaseStore* store = Make(options, tuning);
  EXPECT_TRUE(OpenNow(store).ok()) << "a store that cannot be reached is waited for";
  ASSERT_TRUE(server_->Restart().ok());
  ASSERT_TRUE(RunUntil([&] { return InTrouble("eviction"); }));
  const CasResult made = CasNow(store, std::nullopt, Beat(1));
  EXPECT_EQ(made.outcome, Cas::kRefused);
  EXPECT_NE(made.error.find("allkeys-lru"), std::string::npos) << made.error;
  ASSERT_TRUE(Do({"CONFIG", "SET", "maxmemory-policy", "noeviction"}).ok());
  ASSERT_TRUE(RunUntil([&] { return !InTrouble("eviction"); }));
  EXPECT_EQ(CasNow(store, std::nullopt, Beat(2)).outcome, Cas::kApplied);
}

}  // namespace
}  // namespace leasehold::store
