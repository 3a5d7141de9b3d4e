// The redis adapter against a real redis-server beyond the contract suite: TLS, replicas, edits by
// hand, hints in time, servers that freeze, die and return.
#include <algorithm>

#include "redis_fixture.h"
#include "store/redis_record.h"

namespace leasehold::store {
namespace {

using base::Duration;
using base::MonoTime;
using loop::Loop;
using testing::RedisCerts;
using testing::RedisServer;
using Kind = WatchEvent::Kind;

class RedisStoreTest : public RedisFixture {
 protected:
  lease::Version Held(LeaseStore* store) {
    const CasResult made = CasNow(store, std::nullopt, Beat(1));
    EXPECT_EQ(made.outcome, Cas::kApplied) << made.error;
    return made.version;
  }
  void StartTls(bool client_cert) {
    auto certs = RedisCerts::Make();
    ASSERT_TRUE(certs.ok()) << certs.error().message;
    certs_ = std::move(*certs);
    Server({.args = {}, .certs = certs_.get(), .tls_wants_client_cert = client_cert});
  }
  RedisOptions TlsOptions() {
    RedisOptions options;
    options.url = server_->tls_url();
    options.tls_ca_file = certs_->ca();
    return options;
  }
  // Opens (never an error: it may be repaired) and reads once.
  ReadResult FirstRead(const RedisOptions& options) {
    LeaseStore* store = Make(options);
    EXPECT_TRUE(OpenNow(store).ok());
    return ReadNow(store, Duration::Seconds(2));
  }
  LeaseStore::WatchCallback Log() {
    return [this](WatchEvent event) { hints_.push_back(event.kind); };
  }
  size_t Hints(Kind kind) const {
    return static_cast<size_t>(std::count(hints_.begin(), hints_.end(), kind));
  }

  std::unique_ptr<RedisCerts> certs_;
  std::vector<Kind> hints_;
};

// ---- TLS ----

TEST_F(RedisStoreTest, TlsWithTheRightCaWorks) {
  StartTls(false);
  EXPECT_EQ(FirstRead(TlsOptions()).outcome, Read::kAbsent);
}

TEST_F(RedisStoreTest, TlsWithAnotherCaIsNotTrusted) {
  StartTls(false);
  RedisOptions options = TlsOptions();
  options.tls_ca_file = certs_->other_ca();
  const ReadResult read = FirstRead(options);
  EXPECT_TRUE(read.outcome == Read::kRefused || read.outcome == Read::kAmbiguous);
  EXPECT_NE(read.error.find("certificate"), std::string::npos) << read.error;
}

TEST_F(RedisStoreTest, TlsChecksTheName) {
  StartTls(false);
  RedisOptions options = TlsOptions();
  options.tls_server_name = "redis.elsewhere";
  EXPECT_NE(FirstRead(options).error.find("redis.elsewhere"), std::string::npos);
  options.tls_verify = false;
  EXPECT_EQ(FirstRead(options).outcome, Read::kAbsent);
}

TEST_F(RedisStoreTest, TlsShowsTheClientCertificateWhereOneIsWanted) {
  StartTls(true);
  RedisOptions options = TlsOptions();
  const ReadResult without = FirstRead(options);
  EXPECT_NE(without.outcome, Read::kAbsent) << "the server wanted a certificate";
  EXPECT_FALSE(without.error.empty());
  options.tls_cert_file = certs_->File("client.crt");
  options.tls_key_file = certs_->File("client.key");
  const ReadResult with = FirstRead(options);
  EXPECT_EQ(with.outcome, Read::kAbsent) << with.error;
}

TEST_F(RedisStoreTest, PlainTextToATlsPortIsAnErrorAndNoHang) {
  StartTls(false);
  RedisOptions options;
  options.url = "redis://127.0.0.1:" + std::to_string(server_->tls_port());
  const ReadResult read = FirstRead(options);
  EXPECT_EQ(read.outcome, Read::kAmbiguous);
  EXPECT_FALSE(read.error.empty());
}

// ---- the record ----

TEST_F(RedisStoreTest, AnEditByHandIsAChange) {
  LeaseStore* store = Opened(Options());
  const lease::Version held = Held(store);
  ASSERT_TRUE(Do({"HSET", NamesOf("t", "orders").key, "process_id", "p-2", "token", "2"}).ok());
  const CasResult renewed = CasNow(store, held, Beat(2));
  ASSERT_EQ(renewed.outcome, Cas::kConflict) << renewed.error;
  ASSERT_TRUE(renewed.record.has_value());
  EXPECT_EQ(renewed.record->token, 2U);
  EXPECT_EQ(renewed.record->process_id, "p-2");
}

TEST_F(RedisStoreTest, ARecordGivenAnExpiryLosesIt) {
  LeaseStore* store = Opened(Options());
  const lease::Version held = Held(store);
  const std::string key = NamesOf("t", "orders").key;
  ASSERT_TRUE(Do({"EXPIRE", key, "1000"}).ok());
  EXPECT_EQ(CasNow(store, held, Beat(2)).outcome, Cas::kApplied);
  EXPECT_EQ(server_->Command({"TTL", key})->integer(), -1);
}

TEST_F(RedisStoreTest, APeerThatIsGoneLeavesTheRecordAndUnknownFieldsStay) {
  LeaseStore* store = Opened(Options());
  const lease::Version held = Held(store);
  ASSERT_TRUE(Do({"HSET", NamesOf("t", "orders").key, "team", "blue"}).ok());
  lease::Record next = Beat(2);
  next.peers = {{"api", "10.0.0.1:1"}};
  ASSERT_EQ(CasNow(store, held, next).outcome, Cas::kApplied);
  const ReadResult read = ReadNow(store);
  EXPECT_EQ(read.record.peers, next.peers);
  EXPECT_EQ(read.record.unknown, (std::map<std::string, std::string>{{"team", "blue"}}));
}

TEST_F(RedisStoreTest, DatabasesDoNotMeet) {
  RedisOptions options = Options();
  Held(Opened(options));
  options.url += "/3";
  EXPECT_EQ(ReadNow(Opened(options)).outcome, Read::kAbsent);
}

TEST_F(RedisStoreTest, ASteadyHolderCostsOneCommandPerRenewal) {
  LeaseStore* store = Opened(Options());
  lease::Version held = Held(store);
  const auto calls = [this] {
    const std::string info = server_->Command({"INFO", "commandstats"})->text();
    const size_t at = info.find("cmdstat_evalsha:calls=");
    return at == std::string::npos ? 0 : std::stoi(info.substr(at + 22));
  };
  const int before = calls();
  for (uint64_t beat = 2; beat < 12; ++beat) {
    const CasResult renewed = CasNow(store, held, Beat(beat));
    ASSERT_EQ(renewed.outcome, Cas::kApplied) << renewed.error;
    held = renewed.version;
  }
  EXPECT_EQ(calls() - before, 10);
}

// ---- replicas ----

TEST_F(RedisStoreTest, FewerReplicasThanAskedIsAmbiguousThoughWritten) {
  RedisOptions options = Options();
  options.wait_replicas = 1;
  LeaseStore* store = Opened(options);
  const CasResult made = CasNow(store, std::nullopt, Beat(1), Duration::Millis(400));
  EXPECT_EQ(made.outcome, Cas::kAmbiguous);
  EXPECT_NE(made.error.find("wait_replicas"), std::string::npos) << made.error;
  EXPECT_EQ(ReadNow(store).outcome, Read::kRecord);
  EXPECT_EQ(CasNow(store, std::nullopt, Beat(2), Duration::Millis(400)).outcome, Cas::kConflict);
}

TEST_F(RedisStoreTest, AReplicaThatFollowsMakesItApplied) {
  Server();
  auto replica =
      RedisServer::Start({.args = {"--replicaof", "127.0.0.1 " + std::to_string(server_->port())}});
  ASSERT_TRUE(replica.ok()) << replica.error().message;
  ASSERT_TRUE(RunUntil([&] {
    const std::string info = server_->Command({"INFO", "replication"})->text();
    return info.find("state=online") != std::string::npos;
  }));
  RedisOptions options = Options();
  options.wait_replicas = 1;
  LeaseStore* store = Opened(options);
  const CasResult made = CasNow(store, std::nullopt, Beat(1));
  ASSERT_EQ(made.outcome, Cas::kApplied) << made.error;
  EXPECT_TRUE(made.store_unix_ms.has_value()) << "lost time is noticed with replicas too";
  ASSERT_TRUE(Do({"SCRIPT", "FLUSH"}).ok());
  const CasResult renewed = CasNow(store, made.version, Beat(2));
  EXPECT_EQ(renewed.outcome, Cas::kApplied) << renewed.error;
}

// ---- hints ----

TEST_F(RedisStoreTest, AReleaseIsHeardWithin25Milliseconds) {
  LeaseStore* holder = Opened(Options());
  LeaseStore* standby = Opened(Options());
  MonoTime heard;
  standby->Watch("orders", [&](WatchEvent event) {
    hints_.push_back(event.kind);
    heard = Loop::Now();
  });
  ASSERT_TRUE(RunUntil([&] { return Hints(Kind::kChangedHands) == 1; }));
  lease::Version version = Held(holder);
  std::vector<Duration> delays;
  for (uint64_t round = 1; round <= 21; ++round) {
    const size_t before = Hints(Kind::kChangedHands);
    lease::Record next = Beat(1 + round, (round + 1) / 2);
    if (round % 2 == 0) next.state = lease::RecordState::kReleased;
    if (round % 2 == 1) next.token = round + 1;
    const MonoTime sent = Loop::Now();
    const CasResult moved = CasNow(holder, version, next);
    ASSERT_EQ(moved.outcome, Cas::kApplied) << moved.error;
    ASSERT_TRUE(RunUntil([&] { return Hints(Kind::kChangedHands) > before; }));
    delays.push_back(heard - sent);
    version = moved.version;
  }
  std::sort(delays.begin(), delays.end());
  std::printf("release to hint: median %.2f ms, worst %.2f ms\n",
              delays[delays.size() / 2].seconds() * 1e3, delays.back().seconds() * 1e3);
  EXPECT_LT(delays[delays.size() / 2], Duration::Millis(25));
}

TEST_F(RedisStoreTest, ARestartIsPushDownThenPushUpThenAHintToLook) {
  LeaseStore* store = Opened(Options());
  store->Watch("orders", Log());
  ASSERT_TRUE(RunUntil([&] { return Hints(Kind::kPushUp) == 1; }));
  const lease::Version held = Held(store);
  RunUntil([&] { return Hints(Kind::kChangedHands) == 2; });
  ASSERT_TRUE(server_->Kill9().ok());
  ASSERT_TRUE(RunUntil([&] { return Hints(Kind::kPushDown) == 1; }));
  ASSERT_TRUE(server_->Restart().ok());
  ASSERT_TRUE(RunUntil([&] { return Hints(Kind::kPushUp) == 2; }));
  EXPECT_TRUE(RunUntil([&] { return Hints(Kind::kChangedHands) == 3; }));
  EXPECT_EQ(hints_[hints_.size() - 2], Kind::kPushUp);
  EXPECT_EQ(CasUntilApplied(store, held, Beat(2)).outcome, Cas::kApplied);
  EXPECT_TRUE(RunUntil([&] { return Hints(Kind::kBeat) >= 1; }));
}

TEST_F(RedisStoreTest, AFrozenServerIsPushDownThoughItsConnectionStands) {
  RedisOptions options = Options();
  RedisTuning tuning = TuningOf(options);
  tuning.ping_interval = Duration::Millis(50);
  tuning.ping_timeout = Duration::Millis(100);
  LeaseStore* store = Make(options, tuning);
  ASSERT_TRUE(OpenNow(store).ok());
  store->Watch("orders", Log());
  ASSERT_TRUE(RunUntil([&] { return Hints(Kind::kPushUp) == 1; }));
  RunFor(Duration::Millis(400));
  EXPECT_EQ(Hints(Kind::kPushDown), 0U) << "a quiet server is not a frozen one";
  ASSERT_TRUE(server_->Stop().ok());
  EXPECT_TRUE(RunUntil([&] { return Hints(Kind::kPushDown) == 1; }, Duration::Seconds(2)));
  ASSERT_TRUE(server_->Cont().ok());
  EXPECT_TRUE(RunUntil([&] { return Hints(Kind::kPushUp) == 2; }));
}

// ---- outages ----

TEST_F(RedisStoreTest, AFrozenServerFailsEachRenewalAtItsOwnTimeout) {
  LeaseStore* store = Opened(Options());
  const lease::Version held = Held(store);
  ASSERT_TRUE(server_->Stop().ok());
  // Steady renewals, one a second, each with 300 ms: no later one may re-arm an earlier deadline.
  std::vector<std::pair<MonoTime, MonoTime>> calls(3);
  int answered = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const MonoTime next = Loop::Now() + Duration::Seconds(1);
    calls[i].first = Loop::Now();
    store->CompareAndSet("orders", held, Beat(2 + i), Duration::Millis(300), [&, i](CasResult r) {
      EXPECT_EQ(r.outcome, Cas::kAmbiguous);
      EXPECT_FALSE(r.error.empty());
      calls[i].second = Loop::Now();
      ++answered;
    });
    RunUntil([&] { return Loop::Now() >= next; });
  }
  ASSERT_EQ(answered, 3);
  EXPECT_GE(calls[0].second - calls[0].first, Duration::Millis(299));
  for (const auto& [sent, told] : calls) EXPECT_LT(told - sent, Duration::Millis(800));
  ASSERT_TRUE(server_->Cont().ok());
  EXPECT_EQ(CasUntilApplied(store, held, Beat(10)).outcome, Cas::kApplied);
}

TEST_F(RedisStoreTest, TwoSilentTimeoutsDropTheConnectionAndMakeItsOtherCallsAmbiguousAtOnce) {
  LeaseStore* store = Opened(Options());
  ASSERT_TRUE(server_->Stop().ok());
  std::vector<std::string> order;
  store->Read("orders", Duration::Seconds(5), [&](const ReadResult& read) {
    EXPECT_EQ(read.outcome, Read::kAmbiguous);
    order.push_back("long " + read.error);
  });
  const auto ask = [&] {
    store->Read("other", Duration::Millis(200),
                [&](const ReadResult&) { order.push_back("short"); });
  };
  ask();
  ASSERT_TRUE(RunUntil([&] { return order.size() == 1; }, Duration::Seconds(2)));
  EXPECT_TRUE(store->stats().connected) << "one late answer is a slow server";
  ask();
  ASSERT_TRUE(RunUntil([&] { return order.size() == 3; }, Duration::Seconds(2)));
  EXPECT_EQ(order[1], "short");
  EXPECT_NE(order[2].find("earlier call"), std::string::npos) << order[2];
  ASSERT_TRUE(server_->Cont().ok());
}

TEST_F(RedisStoreTest, EveryWriteTellsTheServersClock) {
  LeaseStore* store = Opened(Options());
  const auto wall = [] { return Loop::WallNow().unix_ms; };
  const int64_t before = wall();
  const CasResult applied = CasNow(store, std::nullopt, Beat(1));
  const CasResult conflict = CasNow(store, std::nullopt, Beat(2));
  ASSERT_TRUE(applied.store_unix_ms.has_value());
  ASSERT_TRUE(conflict.store_unix_ms.has_value());
  EXPECT_GE(*applied.store_unix_ms, before - 1);
  EXPECT_LE(*conflict.store_unix_ms, wall() + 1);
}

TEST_F(RedisStoreTest, AClosedPortIsAnErrorWithinASecond) {
  RedisOptions options;
  options.url = "redis://127.0.0.1:" + std::to_string(testing::ClosedPort());
  LeaseStore* store = Make(options);
  const MonoTime start = Loop::Now();
  EXPECT_TRUE(OpenNow(store).ok()) << "a store that cannot be reached is waited for";
  EXPECT_LT(Loop::Now() - start, Duration::Seconds(1));
  for (int i = 0; i < 5; ++i) {  // also deep in the back-off
    const MonoTime asked = Loop::Now();
    const ReadResult read = ReadNow(store);
    EXPECT_EQ(read.outcome, Read::kAmbiguous);
    EXPECT_NE(read.error.find("refused"), std::string::npos) << read.error;
    EXPECT_LT(Loop::Now() - asked, Duration::Seconds(1));
  }
}

TEST_F(RedisStoreTest, ANameThatDoesNotResolveIsAnErrorThatNamesIt) {
  RedisOptions options;
  options.url = "redis://no-such-host.invalid";
  LeaseStore* store = Make(options);
  EXPECT_TRUE(OpenNow(store).ok());
  const ReadResult read = ReadNow(store);
  EXPECT_EQ(read.outcome, Read::kAmbiguous);
  EXPECT_NE(read.error.find("no-such-host.invalid"), std::string::npos) << read.error;
}

TEST_F(RedisStoreTest, AStoreMayBeDestroyedInsideItsOwnAnswer) {
  LeaseStore* store = Opened(Options());
  bool first = false;
  bool second = false;
  store->Read("orders", kCall, [&](const ReadResult&) {
    first = true;
    stores_.clear();
  });
  store->Read("orders", kCall, [&](const ReadResult&) { second = true; });
  EXPECT_TRUE(RunUntil([&] { return first; }));
  RunFor(Duration::Millis(50));
  EXPECT_FALSE(second);
}

TEST_F(RedisStoreTest, TheStoreSaysWhereItIsWithoutItsSecrets) {
  Server();
  RedisOptions options = Options();
  options.url = "redis://u:s3cret@127.0.0.1:" + std::to_string(server_->port()) + "/2";
  EXPECT_EQ(Make(options)->Describe(),
            "redis at 127.0.0.1:" + std::to_string(server_->port()) + "/2");
}

}  // namespace
}  // namespace leasehold::store
