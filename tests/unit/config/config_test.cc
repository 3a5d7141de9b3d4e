// What a right configuration becomes: values in the rooms' options, variables replaced, what
// follows from other options filled in, risks warned of, secrets masked.
#include "config/config.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "config/expand.h"
#include "config/option_value.h"
#include "config/suggest.h"

namespace leasehold::config {
namespace {

using base::Duration;

class ConfigTest : public ::testing::Test {
 protected:
  LoadResult Load(const std::string& text) {
    return LoadText(text, "test.conf", [this](const char* name) -> const char* {
      const auto at = environment_.find(name);
      return at == environment_.end() ? nullptr : at->second.c_str();
    });
  }
  Config LoadGood(const std::string& text) {
    const LoadResult result = Load(text);
    EXPECT_TRUE(result.errors.empty()) << result.errors[0].ToString();
    return result.config;
  }
  // The keys of the warnings, in order.
  std::string Warned(const std::string& text) {
    std::string keys;
    const LoadResult result = Load(text);
    EXPECT_TRUE(result.errors.empty()) << result.errors[0].ToString();
    for (const Problem& warning : result.warnings) keys += warning.key + " ";
    return keys;
  }
  std::string Expanded(const std::string& text) {
    const auto result = Expand(text, [this](const char* name) -> const char* {
      const auto at = environment_.find(name);
      return at == environment_.end() ? nullptr : at->second.c_str();
    });
    return result ? *result : "error: " + result.error().message;
  }

  std::map<std::string, std::string> environment_;
  const std::string lease_ = "[[lease]]\nname = \"orders\"\n";
  const std::string gate_ =
      "[[gate]]\nname = \"web\"\nlisten = \"127.0.0.1:8080\"\nupstream = \"127.0.0.1:8000\"\n";
};

TEST_F(ConfigTest, ALeaseAloneIsEnough) {
  const Config config = LoadGood(lease_);
  EXPECT_EQ(config.store.type, "file");
  EXPECT_EQ(config.leases.size(), 1u);
  EXPECT_TRUE(config.gates.empty());
  EXPECT_FALSE(config.node.id.empty());
  EXPECT_EQ(config.admin.listen, "127.0.0.1:9090");
}

TEST_F(ConfigTest, ValuesReachTheRoomsOptions) {
  const Config config = LoadGood(
      "[node]\nid = \"n1\"\nstate_dir = \"/s\"\n"
      "[store]\ntype = \"redis\"\nredis.url = \"rediss://r:6380/2\"\nredis.wait_replicas = 1\n"
      "redis.tls_verify = false\n"
      "[[lease]]\nname = \"orders\"\nttl = \"3s\"\nmax_renew_fails = 2\nfail_if_held = true\n"
      "on_token_regression = \"refuse\"\npoll_interval = \"100ms\"\nmax_clock_drift = 0\n"
      "[[gate]]\nname = \"t\"\ntype = \"tcp\"\nlisten = \"unix:/tmp/x\"\nupstream = \"[::1]:5\"\n"
      "standby = \"close\"\non_loss = \"finish\"\ndirection = \"outbound\"\nbuffer_bytes = "
      "\"8KiB\"\n"
      "[app]\ncheck = \"tcp://127.0.0.1:5\"\non_unready = \"keep\"\n"
      "[admin]\nlisten = \"\"\nallowed_hosts = [\"pod\"]\n"
      "[signal]\nsocket = \"/tmp/s\"\nallow_uids = [0, 1000]\n"
      "[log]\nformat = \"json\"\nlevel = \"warn\"\n");
  EXPECT_EQ(config.node.id, "n1");
  EXPECT_EQ(config.store.redis.url, "rediss://r:6380/2");
  EXPECT_EQ(config.store.redis.wait_replicas, 1);
  EXPECT_FALSE(config.store.redis.tls_verify);
  EXPECT_EQ(config.leases[0].ttl, Duration::Seconds(3));
  EXPECT_EQ(config.leases[0].max_renew_fails, 2);
  EXPECT_TRUE(config.leases[0].fail_if_held);
  EXPECT_EQ(config.leases[0].on_token_regression, lease::OnTokenRegression::kRefuse);
  EXPECT_EQ(config.leases[0].poll_interval, Duration::Millis(100));
  EXPECT_EQ(config.leases[0].max_clock_drift, 0);
  EXPECT_FALSE(config.leases[0].renew_interval.has_value());
  const gate::Options& gate = config.gates[0];
  EXPECT_EQ(gate.type, gate::Type::kTcp);
  EXPECT_EQ(gate.lease, "orders");
  EXPECT_EQ(gate.listen.path, "/tmp/x");
  EXPECT_EQ(gate.upstream.ToString(), "[::1]:5");
  EXPECT_EQ(gate.standby, gate::StandbyPolicy::kClose);
  EXPECT_EQ(gate.on_loss, gate::OnLoss::kFinish);
  EXPECT_TRUE(gate.outbound);
  EXPECT_EQ(gate.buffer_bytes, 8192u);
  EXPECT_EQ(config.app.on_unready, health::OnUnready::kKeep);
  EXPECT_EQ(config.admin.listen, "");
  EXPECT_EQ(config.admin.allowed_hosts, std::vector<std::string>{"pod"});
  EXPECT_EQ(config.signal.allow_uids, (std::vector<int64_t>{0, 1000}));
  EXPECT_EQ(config.log.format, observe::LogFormat::kJson);
  EXPECT_EQ(config.log.level, observe::LogLevel::kWarn);
}

TEST_F(ConfigTest, StandbyDefaultsFollowTheGatesType) {
  EXPECT_EQ(LoadGood(lease_ + gate_).gates[0].standby, gate::StandbyPolicy::kReject);
  EXPECT_EQ(LoadGood(lease_ + gate_ + "type = \"tcp\"\n").gates[0].standby,
            gate::StandbyPolicy::kRefuse);
}

TEST_F(ConfigTest, HoldTimeoutIsFilledInFromItsLease) {
  EXPECT_EQ(LoadGood(lease_ + gate_).gates[0].hold_timeout, Duration::Seconds(30));  // 20 + 5 + 5
  const Config slow = LoadGood(lease_ + "ttl = \"300s\"\n" + gate_ + "standby = \"hold\"\n");
  EXPECT_EQ(slow.gates[0].hold_timeout, Duration::Seconds(37));  // 20 + 11 + (5 + 1)
}

TEST_F(ConfigTest, GatesFindTheirLeaseAmongSeveral) {
  const Config config = LoadGood(lease_ + "[[lease]]\nname = \"b\"\nstep_down_grace = \"1s\"\n" +
                                 gate_ + "lease = \"b\"\n");
  EXPECT_EQ(config.gates[0].lease, "b");
  EXPECT_EQ(config.gates[0].hold_timeout, Duration::Seconds(11));
}

TEST_F(ConfigTest, VariablesAreReplacedInsideStringsAndLists) {
  environment_ = {{"POD", "p-0"}, {"EMPTY", ""}, {"FAILS", "5"}};
  const Config config = LoadGood(
      "[node]\nid = \"${POD}\"\n[admin]\nallowed_hosts = [\"${POD}.svc\"]\n[[lease]]\n"
      "name = \"${EMPTY:-fallback}\"\nmax_renew_fails = \"${FAILS:-3}\"\n"
      "fail_if_held = \"${HELD:-true}\"\nmax_clock_drift = \"${DRIFT:-0.002}\"\n");
  EXPECT_EQ(config.node.id, "p-0");
  EXPECT_EQ(config.admin.allowed_hosts[0], "p-0.svc");
  EXPECT_EQ(config.leases[0].name, "fallback");
  EXPECT_EQ(config.leases[0].max_renew_fails, 5);
  EXPECT_TRUE(config.leases[0].fail_if_held);
  EXPECT_EQ(config.leases[0].max_clock_drift, 0.002);
}

TEST_F(ConfigTest, ExpansionKnowsItsFewForms) {
  environment_ = {{"A", "1"}, {"EMPTY", ""}};
  EXPECT_EQ(Expanded("x${A}y${A}"), "x1y1");
  EXPECT_EQ(Expanded("${EMPTY}"), "");
  EXPECT_EQ(Expanded("${EMPTY:-d}"), "d");
  EXPECT_EQ(Expanded("${B:-}"), "");
  EXPECT_EQ(Expanded("${B:-a:-b}"), "a:-b");
  EXPECT_EQ(Expanded("$A $ $$ a$"), "$A $ $$ a$");
  EXPECT_EQ(Expanded("$${A}"), "${A}");
  EXPECT_EQ(Expanded("${A}").find("error"), std::string::npos);
  for (const char* bad : {"${B}", "${", "${}", "${1A}", "${A B}", "${A-x}", "${:-x}"}) {
    EXPECT_EQ(Expanded(bad).rfind("error: ", 0), 0u) << bad << " gave " << Expanded(bad);
  }
}

TEST_F(ConfigTest, AReplacedValueIsNotExpandedAgain) {
  environment_ = {{"A", "${B}"}};
  EXPECT_EQ(Expanded("${A}"), "${B}");
}

TEST_F(ConfigTest, RisksAreWarnedOf) {
  EXPECT_EQ(Warned(lease_), "");
  EXPECT_EQ(Warned(lease_ + "ttl = \"1s\"\n"), "lease.ttl ");
  EXPECT_EQ(Warned(lease_ + gate_ + "on_loss = \"finish\"\n"), "gate.on_loss ");
  EXPECT_EQ(Warned("[store]\nfile.dir = \"x\"\n" + lease_), "store.file.dir ");
  EXPECT_EQ(Warned("[store]\nfile.durability = \"process_crash_safe\"\n" + lease_),
            "store.file.durability ");
  EXPECT_EQ(Warned("[store]\nredis.url = \"redis://h\"\n" + lease_), "store.redis.url ");
  EXPECT_EQ(Warned("[store]\ntype = \"redis\"\nredis.allow_eviction = true\n" + lease_),
            "store.redis.allow_eviction ");
  EXPECT_EQ(Warned("[app]\ncheck = \"tcp://127.0.0.1:1\"\nunready_after = \"1.5s\"\n" + lease_),
            "app.unready_after ");
}

TEST_F(ConfigTest, AnUpstreamThatOthersReachPastTheGateIsWarnedOf) {
  const std::string open =
      lease_ + "[[gate]]\nname = \"g\"\nlisten = \"127.0.0.1:1\"\nupstream = \"10.0.0.1:1\"\n";
  EXPECT_EQ(Warned(open), "gate.upstream ");
  EXPECT_EQ(Warned(open + "type = \"tcp\"\ndirection = \"outbound\"\n"), "");
}

TEST_F(ConfigTest, JsonMasksSecretsAndTellsTheDerivedValues) {
  const Config config = LoadGood(
      "[store]\ntype = \"redis\"\nredis.url = \"redis://u:hunter2@h:6379/0\"\n"
      "redis.password = \"hunter3\"\n" +
      lease_ + gate_);
  const std::string json = ToJson(config);
  EXPECT_EQ(json.find("hunter"), std::string::npos) << json;
  EXPECT_NE(json.find("\"redis.url\":\"redis://u:***@h:6379/0\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"redis.password\":\"***\""), std::string::npos) << json;
  EXPECT_EQ(json.find("file.dir"), std::string::npos) << json;
  EXPECT_NE(json.find("\"renew_interval\":\"auto\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"renew_interval\":\"1.481s\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"hold_timeout\":\"30s\""), std::string::npos) << json;
  EXPECT_EQ(json.find("\"direction\""), std::string::npos) << "a tcp gate's: " << json;
}

TEST_F(ConfigTest, PasswordsInUrlsAreMasked) {
  EXPECT_EQ(MaskUrlPassword("redis://u:p@h/0"), "redis://u:***@h/0");
  EXPECT_EQ(MaskUrlPassword("redis://:p@h"), "redis://:***@h");
  EXPECT_EQ(MaskUrlPassword("redis://u:p@q@h"), "redis://u:***@h");
  EXPECT_EQ(MaskUrlPassword("redis://u@h:1/0"), "redis://u@h:1/0");
  EXPECT_EQ(MaskUrlPassword("redis://:a/b@h:6379"), "redis://:***@h:6379");
  EXPECT_EQ(MaskUrlPassword("redis://u:12/3@h"), "redis://u:***@h");
  EXPECT_EQ(MaskUrlPassword("http://u:a/b@h"), "http://u:***@h");
  EXPECT_EQ(MaskUrlPassword("http://127.0.0.1:8000/@x"), "http://127.0.0.1:8000/@x");
  EXPECT_EQ(MaskUrlPassword("plain:text@x"), "plain:text@x");
}

TEST_F(ConfigTest, TimingsAreDescribedForEveryLease) {
  const Config config =
      LoadGood("[[lease]]\nname = \"a\"\nttl = \"300s\"\n[[lease]]\nname = \"b\"\n");
  const std::string text = DescribeTimings(config);
  for (const char* part : {"lease a\n", "lease b\n", "62.222s", "279s", "1m15s", "observation"}) {
    if (std::string(part) == "1m15s") continue;  // durations have one unit: 75s
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_NE(text.find("75s"), std::string::npos) << text;
}

TEST_F(ConfigTest, TimingsSayHowLongAGateHoldsWhatComes) {
  const std::string gate =
      "[[lease]]\nname = \"a\"\n[[gate]]\nname = \"web\"\nlisten = \"127.0.0.1:0\"\n"
      "upstream = \"127.0.0.1:1\"\npeer_listen = \"127.0.0.1:0\"\nstandby = ";
  for (const char* holds : {"\"hold\"", "\"forward\""}) {
    const std::string text = DescribeTimings(LoadGood(gate + holds));
    EXPECT_NE(text.find("hold_timeout"), std::string::npos) << holds << "\n" << text;
  }
  EXPECT_EQ(DescribeTimings(LoadGood(gate + "\"reject\"")).find("hold_timeout"), std::string::npos);
}

TEST_F(ConfigTest, SecretFilesLoseTheirLineEndAndAreNamedInErrors) {
  char path[] = "/tmp/leasehold-secret-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  std::ofstream(path) << "hunter2\n";
  const base::Result<std::string> secret = ReadSecretFile(path);
  ASSERT_TRUE(secret.ok());
  EXPECT_EQ(*secret, "hunter2");
  std::ofstream(path) << "\n";
  EXPECT_NE(ReadSecretFile(path).error().message.find(path), std::string::npos);
  std::remove(path);
  const base::Result<std::string> gone = ReadSecretFile(path);
  ASSERT_FALSE(gone.ok());
  EXPECT_NE(gone.error().message.find("No such file"), std::string::npos) << gone.error().message;
}

TEST_F(ConfigTest, SuggestionsAreNearOrNone) {
  EXPECT_EQ(Nearest("lisen", {"listen", "lease"}), "listen");
  EXPECT_EQ(Nearest("lsiten", {"listen", "lease"}), "listen");
  EXPECT_EQ(Nearest("renew_intervall", {"renew_interval", "poll_interval"}), "renew_interval");
  EXPECT_EQ(Nearest("x", {"id"}), "");
  EXPECT_EQ(Nearest("kubernetes", {"node", "store"}), "");
  EXPECT_EQ(Nearest(std::string(100, 'a'), {"listen"}), "");
}

TEST_F(ConfigTest, RubbishIsAnErrorAndNeverACrash) {
  const std::string whole = lease_ + gate_ + "[signal]\nallow_uids = [1, 2]\n";
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    (void)Load(whole.substr(0, cut));
    std::string bent = whole;
    bent[cut] = static_cast<char>(0xff);
    EXPECT_FALSE(Load(bent).errors.empty()) << cut;
  }
  EXPECT_FALSE(Load(std::string(2 << 20, '#')).errors.empty());
  EXPECT_FALSE(Load("a = " + std::string(10000, '[')).errors.empty());
}

}  // namespace
}  // namespace leasehold::config
