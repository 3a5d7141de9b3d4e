// The pure parts of the redis adapter: options, error classes, the record's form, the policy.
#include <gtest/gtest.h>

#include <limits>

#include "store/redis_errors.h"
#include "store/redis_policy.h"
#include "store/redis_record.h"
#include "store/redis_store.h"
#include "store/redis_target.h"

namespace leasehold::store {
namespace {

using proto::Reply;

std::string OptionError(const std::function<void(RedisOptions&)>& change) {
  RedisOptions options;
  change(options);
  const base::Status status = ValidateRedisOptions(options);
  return status.ok() ? "" : status.error().message;
}

Reply Hash(const RedisFields& fields) {
  std::vector<Reply> elements;
  for (const auto& [name, value] : fields) {
    elements.push_back(Reply::Text(Reply::Kind::kString, name));
    elements.push_back(Reply::Text(Reply::Kind::kString, value));
  }
  return Reply::Array(std::move(elements));
}

lease::Record SomeRecord() {
  lease::Record record;
  record.lease = "orders";
  record.node_id = "node-a";
  record.process_id = "p-1";
  record.token = std::numeric_limits<uint64_t>::max();
  record.beat = 7;
  record.ttl_ms = 10000;
  record.peers = {{"web", "10.0.0.1:80"}};
  record.unknown = {{"team", "blue"}};
  return record;
}

TEST(RedisOptionsTest, TheDefaultIsValid) {
  EXPECT_EQ(OptionError([](RedisOptions&) {}), "");
}

TEST(RedisOptionsTest, WhatIsWrongIsNamed) {
  const auto has = [](const std::string& error, std::string_view word) {
    return error.find(word) != std::string::npos;
  };
  EXPECT_TRUE(has(OptionError([](auto& o) { o.url = "http://h"; }), "redis:// or rediss://"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.url = "nonsense"; }), "redis.url"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.url = "redis://h/x"; }), "database"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.url = "redis://h/1/2"; }), "database"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.url = "redis://h/70000"; }), "65535"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.username = "bob"; }), "password"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.tls_ca_file = "/ca"; }), "rediss://"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.tls_verify = false; }), "rediss://"));
  EXPECT_TRUE(has(OptionError([](auto& o) {
                    o.url = "rediss://h";
                    o.tls_cert_file = "/c";
                  }),
                  "tls_key_file"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.wait_replicas = -1; }), "wait_replicas"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.wait_replicas = 65; }), "64"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.connect_timeout = base::Duration::Zero(); }),
                  "connect_timeout"));
  EXPECT_TRUE(has(OptionError([](auto& o) { o.command_timeout = base::Duration::Seconds(61); }),
                  "command_timeout"));
}

TEST(RedisOptionsTest, OptionsOverrideTheUrlAndNoSecretIsInTheName) {
  RedisOptions options;
  options.url = "rediss://a:urlpw@redis.internal/3";
  options.username = "b";
  const base::Result<RedisTarget> target = ResolveRedisTarget(options);
  ASSERT_TRUE(target.ok()) << target.error().message;
  EXPECT_EQ(target->user, "b");
  EXPECT_EQ(target->password, "urlpw");
  EXPECT_EQ(target->database, 3);
  EXPECT_TRUE(target->tls);
  EXPECT_EQ(target->tls_options.server_name, "redis.internal");
  EXPECT_EQ(target->name, "redis at redis.internal:6379/3");
}

TEST(RedisErrorsTest, WhatRepeatsUntilRepairedIsRefused) {
  for (const std::string_view error :
       {"OOM command not allowed when used memory > 'maxmemory'.", "MISCONF Redis is configured",
        "NOPERM this user has no permissions", "WRONGPASS invalid username-password pair",
        "NOAUTH Authentication required.", "WRONGTYPE Operation against a key",
        "DENIED Redis is running in protected mode", "MOVED 3999 127.0.0.1:6381"}) {
    EXPECT_TRUE(ClassifyRedisError("redis at h:1/0", error).refused()) << error;
  }
}

TEST(RedisErrorsTest, WhatMayPassOrIsUnknownIsAmbiguous) {
  for (const std::string_view error :
       {"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script",
        "TRYAGAIN", "CLUSTERDOWN The cluster is down", "MASTERDOWN Link with MASTER is down",
        "READONLY You can't write against a read only replica.", "NOREPLICAS Not enough good",
        "ERR something nobody has seen", "", " ", "SHUTDOWN", "oom"}) {
    EXPECT_FALSE(ClassifyRedisError("redis at h:1/0", error).refused()) << error;
  }
}

TEST(RedisErrorsTest, AnErrorThatRedis6WrapsIsFoundInside) {
  EXPECT_EQ(RedisErrorCode("ERR Error running script (call to f_ab): @user_script:8: "
                           "@user_script: 8: -OOM command not allowed when used memory"),
            "OOM");
}

TEST(RedisErrorsTest, APermissionThatAScriptLacksIsAMissingPermission) {
  EXPECT_EQ(
      RedisErrorCode("ERR The user executing the script can't run this command or subcommand"),
      "NOPERM");
  EXPECT_EQ(RedisErrorCode("NOPERM ACL failure in script: no"), "NOPERM");
}

TEST(RedisErrorsTest, ASentenceNamesServerErrorAndRemedy) {
  const RedisFailure failure = ClassifyRedisError("redis at h:1/0", "WRONGPASS no");
  EXPECT_NE(failure.sentence.find("redis at h:1/0"), std::string::npos);
  EXPECT_NE(failure.sentence.find("WRONGPASS no"), std::string::npos);
  EXPECT_NE(failure.sentence.find("redis.password_file"), std::string::npos);
}

TEST(RedisRecordTest, ARecordComesBackAsItWent) {
  const base::Result<lease::Record> back = DecodeRecord("k", Hash(EncodeRecord(SomeRecord())));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, SomeRecord());
}

TEST(RedisRecordTest, AMissingOrWrongFieldIsNamed) {
  const RedisFields whole = EncodeRecord(SomeRecord());
  for (size_t i = 0; i < whole.size(); ++i) {
    const std::string& name = whole[i].first;
    if (name.starts_with("peer:") || name == "team") continue;
    RedisFields without = whole;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    const base::Result<lease::Record> record = DecodeRecord("k", Hash(without));
    ASSERT_FALSE(record.ok()) << name;
    EXPECT_NE(record.error().message.find(name), std::string::npos) << record.error().message;
  }
  for (const auto& [name, value] : RedisFields{{"token", "-1"},
                                               {"token", "007"},
                                               {"token", "1e3"},
                                               {"token", "18446744073709551616"},
                                               {"beat", ""},
                                               {"format", "4294967296"},
                                               {"ttl_ms", "10s"},
                                               {"state", "leader"}}) {
    RedisFields changed = whole;
    for (auto& field : changed) {
      if (field.first == name) field.second = value;
    }
    const base::Result<lease::Record> record = DecodeRecord("k", Hash(changed));
    ASSERT_FALSE(record.ok()) << name << "=" << value;
    EXPECT_NE(record.error().message.find(name), std::string::npos) << record.error().message;
  }
}

TEST(RedisRecordTest, AnOddOrStrangeReplyIsNoRecord) {
  EXPECT_FALSE(DecodeRecord("k", Reply::Array({Reply::Nil()})).ok());
  EXPECT_FALSE(DecodeRecord("k", Reply::Array({Reply::Integer(1), Reply::Integer(2)})).ok());
  EXPECT_FALSE(DecodeRecord("k", Reply::Integer(1)).ok());
}

// The first was taken, while the script compares the last.
TEST(RedisRecordTest, AFieldThatIsThereTwiceIsNoRecord) {
  RedisFields fields = EncodeRecord(SomeRecord());
  fields.emplace_back("token", "8");
  const base::Result<lease::Record> record = DecodeRecord("k", Hash(fields));
  ASSERT_FALSE(record.ok());
  EXPECT_NE(record.error().message.find("token twice"), std::string::npos);
}

TEST(RedisRecordTest, NamesCannotBeMadeToMeet) {
  EXPECT_EQ(NamesOf("leasehold", "orders").key, "leasehold:lease:orders");
  EXPECT_NE(NamesOf("a", "x:lease:c").key, NamesOf("a:lease:x", "c").key);
  EXPECT_NE(NamesOf("a", "b:c").key, NamesOf("a", "b%3Ac").key);
}

TEST(RedisPolicyTest, OnlyAllkeysPoliciesEvictLeases) {
  const auto judge = [](const std::string& policy) {
    return JudgePolicy("redis", Reply::Text(Reply::Kind::kString,
                                            "# Memory\r\nmaxmemory_policy:" + policy + "\r\nx:1"));
  };
  using Verdict = RedisPolicy::Verdict;
  for (const char* policy : {"noeviction", "volatile-lru", "volatile-ttl", "volatile-random"}) {
    EXPECT_EQ(judge(policy).verdict, Verdict::kSafe) << policy;
  }
  for (const char* policy : {"allkeys-lru", "allkeys-lfu", "allkeys-random", "allkeys-new"}) {
    EXPECT_EQ(judge(policy).verdict, Verdict::kEvicts) << policy;
  }
  EXPECT_NE(judge("allkeys-lru").sentence.find("redis.allow_eviction"), std::string::npos);
  EXPECT_EQ(judge("").verdict, Verdict::kUnknown);
  EXPECT_EQ(JudgePolicy("redis", Reply::Text(Reply::Kind::kError, "NOPERM no")).verdict,
            Verdict::kUnknown);
}

}  // namespace
}  // namespace leasehold::store
