// Broken configurations, one fault each: the line, the key and the sentence people get.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "config/config.h"

namespace leasehold::config {
namespace {

// A configuration without faults, of 8 lines; each case adds or replaces text.
constexpr const char* kGood =
    "[store]\n"                         // 1
    "file.dir = \"/var/lib/test\"\n"    // 2
    "[[lease]]\n"                       // 3
    "name = \"orders\"\n"               // 4
    "[[gate]]\n"                        // 5
    "name = \"web\"\n"                  // 6
    "listen = \"127.0.0.1:8080\"\n"     // 7
    "upstream = \"127.0.0.1:8000\"\n";  // 8

struct Broken {
  std::string name;     // of the case
  std::string replace;  // text of kGood; empty: `with` is appended as line 9 and following
  std::string with;
  int line;
  std::string begins;  // what follows "test.conf:<line>: "
};

const Broken kBroken[] = {
    {"syntax", "[store]", "[store", 1, "not TOML: "},
    {"key_twice", "", "name = \"again\"", 9, "not TOML: "},
    {"key_of_many_parts", "", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q = 1", 9,
     "not TOML: a key has more than 16 parts"},
    {"unknown_section", "[store]", "[stoer]", 1, "stoer: is no section; did you mean \"store\"?"},
    {"unknown_section_far_off", "", "[kubernetes]", 9,
     "kubernetes: is no section; there are node, store, lease, gate, exec, app, admin, signal, "
     "hooks, audit, log"},
    {"outside_of_sections", "[store]", "ttl = \"10s\"\n[store]", 1,
     "ttl: stands outside of any section; it belongs under [[lease]]"},
    {"unknown_key", "file.dir", "file.dri", 2,
     "store.file.dri: is no option of [store]; did you mean \"file.dir\"?"},
    {"unknown_key_of_another_section", "name = \"orders\"",
     "name = \"orders\"\nupstream = \"127.0.0.1:1\"", 5,
     "lease.upstream: is no option of [lease]; it belongs under [[gate]]"},
    {"unknown_key_far_off", "", "rewrite_urls = true", 9,
     "gate.rewrite_urls: is no option of [gate]; `leasehold check --reference` lists them all"},
    {"single_table_doubled", "[store]", "[[store]]", 1,
     "store: must be one table, written [store]"},
    {"repeated_table_single", "[[lease]]", "[lease]", 3,
     "lease: there may be several, so it is written [[lease]]"},
    {"duration_without_quotes", "name = \"orders\"", "name = \"orders\"\nttl = 10", 5,
     "lease.ttl = 10: is an integer; must be a duration in quotes, like"},
    {"duration_without_unit", "name = \"orders\"", "name = \"orders\"\nttl = \"10\"", 5,
     "lease.ttl = \"10\": must be a duration in quotes, like \"250ms\", \"10s\" or \"5m\""},
    {"ttl_too_short", "name = \"orders\"", "name = \"orders\"\nttl = \"100ms\"", 5,
     "lease.ttl = \"100ms\": must be from 500ms to 24h"},
    {"integer_as_word", "name = \"orders\"", "name = \"orders\"\nmax_renew_fails = \"three\"", 5,
     "lease.max_renew_fails = \"three\": is a string; must be a whole number without quotes"},
    {"hold_without_room", "", "standby = \"hold\"\nmax_held = 0", 10,
     "gate.max_held = 0: lets nothing wait, and standby = \"hold\" is to wait"},
    {"http_gate_outbound", "", "direction = \"outbound\"", 9,
     "gate.direction = \"outbound\": has no effect on a gate of type = \"http\"; it is for "
     "\"tcp\""},
    {"integer_out_of_range", "", "max_connections = 0", 9,
     "gate.max_connections = 0: must be from 1 to 1000000"},
    {"boolean_in_words", "name = \"orders\"", "name = \"orders\"\nfail_if_held = \"yes\"", 5,
     "lease.fail_if_held = \"yes\": is a string; must be true or false, without quotes"},
    {"size_of_a_wrong_unit", "", "buffer_bytes = \"64kb\"", 9,
     "gate.buffer_bytes = \"64kb\": must be a size in quotes, like \"64KiB\""},
    {"size_out_of_range", "", "head_bytes_max = \"1GiB\"", 9,
     "gate.head_bytes_max = \"1GiB\": must be from 1KiB to 1MiB"},
    {"ratio_out_of_range", "name = \"orders\"", "name = \"orders\"\nmax_clock_drift = 0.5", 5,
     "lease.max_clock_drift = 0.5: must be from 0 to 0.05"},
    {"address_without_port", "127.0.0.1:8080", "127.0.0.1", 7,
     "gate.listen = \"127.0.0.1\": is not an address: the port is missing; write"},
    {"address_of_a_bare_v6", "127.0.0.1:8080", "::1:8080", 7,
     "gate.listen = \"::1:8080\": is not an address: an IPv6 address needs brackets; write"},
    {"upstream_missing", "upstream = \"127.0.0.1:8000\"", "", 5,
     "gate.upstream: is missing; the application"},
    {"upstream_port_zero", "127.0.0.1:8000", "127.0.0.1:0", 8,
     "gate.upstream = \"127.0.0.1:0\": port 0 is no port to connect to"},
    {"upstream_is_the_gate", "127.0.0.1:8000", "127.0.0.1:8080", 8,
     "gate.upstream = \"127.0.0.1:8080\": is where the gate itself listens"},
    {"store_type_unknown", "file.dir", "type = \"zookeeper\"\nfile.dir", 2,
     "store.type = \"zookeeper\": must be one of \"file\", \"redis\""},
    {"store_type_of_a_later_version", "file.dir", "type = \"etcd\"\nfile.dir", 2,
     "store.type = \"etcd\": is not in this version of Leasehold; what there is now: \"file\", "
     "\"redis\", \"dynamodb\""},
    {"gate_type_of_a_later_version", "name = \"web\"", "name = \"web\"\ntype = \"mqtt\"", 7,
     "gate.type = \"mqtt\": is not in this version of Leasehold; what there is now: \"tcp\", "
     "\"http\", \"sqs\""},
    {"forward_without_a_peer_listener", "", "standby = \"forward\"", 9,
     "gate.standby = \"forward\": needs peer_listen beside it, like \"0.0.0.0:8081\""},
    {"forward_of_an_outbound_gate", "",
     "type = \"tcp\"\ndirection = \"outbound\"\nstandby = \"forward\"\n"
     "peer_listen = \"127.0.0.1:8081\"",
     11, "gate.standby = \"forward\": cannot go with direction = \"outbound\""},
    {"advertise_without_a_peer_listener", "", "advertise = \"10.0.0.1:8081\"", 9,
     "gate.advertise = \"10.0.0.1:8081\": needs peer_listen beside it"},
    {"peer_listener_everywhere", "", "standby = \"forward\"\npeer_listen = \"0.0.0.0:8081\"", 10,
     "gate.peer_listen = \"0.0.0.0:8081\": listens everywhere, which is no address to connect to"},
    {"advertise_everywhere", "", "peer_listen = \"0.0.0.0:8081\"\nadvertise = \"0.0.0.0:8081\"", 10,
     "gate.advertise = \"0.0.0.0:8081\": is no address to connect to"},
    {"advertise_where_clients_arrive", "",
     "peer_listen = \"127.0.0.1:8081\"\nadvertise = \"127.0.0.1:8080\"", 10,
     "gate.advertise = \"127.0.0.1:8080\": is where clients of gate \"web\" arrive; name "
     "peer_listen's address"},
    {"peer_listener_at_the_gates_own_place", "",
     "standby = \"forward\"\npeer_listen = \"127.0.0.1:8080\"", 10,
     "gate.peer_listen = \"127.0.0.1:8080\": is the same place as gate \"web\""},
    {"forward_without_time_for_a_move", "",
     "standby = \"forward\"\npeer_listen = \"127.0.0.1:8081\"\nhold_timeout = \"3s\"", 11,
     "gate.hold_timeout = \"3s\": must exceed step_down_grace + step_down_hold_off"},
    {"standby_of_another_gate_type", "", "standby = \"refuse\"", 9,
     "gate.standby = \"refuse\": must be one of \"reject\", \"hold\", \"forward\""},
    {"option_of_another_gate_type", "", "type = \"tcp\"\nhead_timeout = \"1s\"", 10,
     "gate.head_timeout = \"1s\": has no effect on a gate of type = \"tcp\"; it is for \"http\" or "
     "\"sqs\""},
    {"upstream_of_an_sqs_gate_without_scheme", "upstream = \"127.0.0.1:8000\"",
     "type = \"sqs\"\nupstream = \"sqs.eu-central-1.amazonaws.com\"", 9,
     "gate.upstream = \"sqs.eu-central-1.amazonaws.com\": "},
    {"sqs_gate_that_leads_to_itself", "upstream = \"127.0.0.1:8000\"",
     "type = \"sqs\"\nupstream = \"http://localhost:8080\"", 9,
     "gate.upstream = \"http://localhost:8080\": is where the gate itself listens"},
    {"region_with_capitals", "upstream = \"127.0.0.1:8000\"", "type = \"sqs\"\nregion = \"EU\"", 9,
     "gate.region = \"EU\": is no AWS region, like \"eu-central-1\""},
    {"standby_of_an_sqs_gate", "upstream = \"127.0.0.1:8000\"",
     "type = \"sqs\"\nstandby = \"hold\"", 9,
     "gate.standby = \"hold\": has no effect on a gate of type = \"sqs\""},
    {"table_by_its_arn", "file.dir",
     "type = \"dynamodb\"\ndynamodb.table = \"arn:aws:dynamodb:eu-central-1:1:table/t\"\nfile.dir",
     3, "store.dynamodb.table = \"arn:aws:dynamodb:eu-central-1:1:table/t\": must be 3 to 255"},
    {"dynamodb_endpoint_with_a_password", "file.dir",
     "type = \"dynamodb\"\ndynamodb.endpoint = \"http://u:p@localhost:8000\"\nfile.dir", 3,
     "store.dynamodb.endpoint = \"http://u:***@localhost:8000\": takes no user and password"},
    {"no_lease", "[[lease]]\nname = \"orders\"\n", "", 0,
     "lease: there is none; write at least [[lease]] with a name"},
    {"lease_without_a_name", "name = \"orders\"", "", 3, "lease.name: is missing; "},
    {"lease_name_twice", "", "[[lease]]\nname = \"orders\"", 10,
     "lease.name = \"orders\": is the name of an earlier [[lease]] too"},
    {"lease_name_with_a_slash", "\"orders\"", "\"a/b\"", 4,
     "lease.name = \"a/b\": must be 1 to 128 letters"},
    {"lease_name_with_a_colon", "\"orders\"", "\"a: b\"", 4,
     "lease.name = \"a: b\": must be 1 to 128 letters"},
    {"gate_of_no_lease", "", "lease = \"payments\"", 9,
     "gate.lease = \"payments\": no [[lease]] has this name; there are \"orders\""},
    {"gate_must_choose_a_lease", "", "[[lease]]\nname = \"payments\"", 5,
     "gate.lease: is missing; with several leases each gate names its own: one of \"orders\", "
     "\"payments\""},
    {"gate_name_twice", "",
     "[[gate]]\nname = \"web\"\nlisten = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:2\"", 10,
     "gate.name = \"web\": is the name of an earlier [[gate]] too"},
    {"two_gates_at_one_place", "",
     "[[gate]]\nname = \"b\"\nlisten = \"0.0.0.0:8080\"\nupstream = \"127.0.0.1:2\"", 11,
     "gate.listen = \"0.0.0.0:8080\": is the same place as gate \"web\" (127.0.0.1:8080)"},
    {"api_at_a_gates_place", "", "[admin]\nlisten = \"localhost:8080\"", 10,
     "admin.listen = \"localhost:8080\": is the same place as gate \"web\""},
    {"interval_without_room", "name = \"orders\"", "name = \"orders\"\nrenew_interval = \"3s\"", 5,
     "lease.renew_interval = \"3s\": leaves no room"},
    {"margin_below_the_clock_error", "name = \"orders\"",
     "name = \"orders\"\nsafety_margin = \"1ms\"", 5,
     "lease.safety_margin = \"1ms\": must be at least 20ms"},
    {"hold_off_too_short", "name = \"orders\"", "name = \"orders\"\nstep_down_hold_off = \"1s\"", 5,
     "lease.step_down_hold_off = \"1s\": must exceed poll_interval + renew_call_timeout"},
    {"hold_shorter_than_a_move", "", "standby = \"hold\"\nhold_timeout = \"26s\"", 10,
     "gate.hold_timeout = \"26s\": must exceed step_down_grace + step_down_hold_off + one "
     "poll_interval of lease \"orders\" = 26s"},
    {"variable_not_set", "/var/lib/test", "${NOWHERE}/x", 2,
     "store.file.dir = \"${NOWHERE}/x\": the environment variable NOWHERE is not set"},
    {"variable_not_closed", "/var/lib/test", "${HERE/x", 2,
     "store.file.dir = \"${HERE/x\": \"${\" has no closing \"}\""},
    {"variable_within_a_default", "/var/lib/test", "${NOWHERE:-${HERE}}", 2,
     "store.file.dir = \"${NOWHERE:-${HERE}}\": the default of ${NOWHERE} contains another"},
    {"api_open_to_others", "", "[admin]\nlisten = \"0.0.0.0:9090\"", 10,
     "admin.listen = \"0.0.0.0:9090\": others could step this instance down; give a token_file"},
    {"user_ids_as_names", "", "[signal]\nallow_uids = [\"root\"]", 10,
     "signal.allow_uids = [\"root\"]: holds \"root\"; must be a list of whole numbers"},
    {"relative_socket", "", "[signal]\nsocket = \"x.sock\"", 10,
     "signal.socket = \"x.sock\": must be an absolute path"},
    {"check_of_an_unknown_kind", "", "[app]\ncheck = \"udp://127.0.0.1:1\"", 10,
     "app.check = \"udp://127.0.0.1:1\": "},
    {"unready_before_the_next_check", "",
     "[app]\ncheck = \"tcp://127.0.0.1:1\"\n"
     "interval = \"2s\"\nunready_after = \"2s\"",
     12, "app.unready_after = \"2s\": must exceed interval = 2s"},
    {"redis_url_of_another_kind", "file.dir",
     "type = \"redis\"\nredis.url = \"http://h\"\nfile.dir", 3,
     "store.redis.url = \"http://h\": must begin with redis:// or rediss://"},
    {"redis_database_no_number", "file.dir",
     "type = \"redis\"\nredis.url = \"redis://h/x\"\nfile.dir", 3,
     "store.redis.url = \"redis://h/x\": \"/x\" is not a database number"},
    {"redis_tls_without_tls", "file.dir", "type = \"redis\"\nredis.tls_ca_file = \"/ca\"\nfile.dir",
     1, "store.redis.url = \"redis://127.0.0.1:6379/0\": redis.tls_* options are set"},
    {"two_passwords", "file.dir",
     "type = \"redis\"\nredis.password = \"hunter2\"\nredis.password_file = \"/p\"\nfile.dir", 3,
     "store.redis.password = \"***\": is given beside redis.password_file; keep one"},
    {"client_certificate_without_key", "file.dir",
     "type = \"redis\"\nredis.tls_cert_file = \"/c\"\nfile.dir", 3,
     "store.redis.tls_cert_file = \"/c\": needs redis.tls_key_file beside it"},
    {"node_id_with_a_blank", "[store]", "[node]\nid = \"node a\"\n[store]", 2,
     "node.id = \"node a\": must be at most 253 letters"},
    {"prefix_with_a_slash", "[store]", "[store]\nprefix = \"a/b\"", 2,
     "store.prefix = \"a/b\": must be 1 to 64 letters"},
    {"log_level_unknown", "", "[log]\nlevel = \"verbose\"", 10,
     "log.level = \"verbose\": must be one of \"debug\", \"info\", \"warn\", \"error\""},
};

class BrokenConfigTest : public ::testing::TestWithParam<Broken> {
 protected:
  static const char* Environment(const char* name) {
    return std::string(name) == "HERE" ? "/here" : nullptr;
  }
  static std::string TextOf(const Broken& broken) {
    std::string text = kGood;
    if (broken.replace.empty()) return text + broken.with + "\n";
    const size_t at = text.find(broken.replace);
    EXPECT_NE(at, std::string::npos) << "the case replaces what is not there";
    return text.replace(at, broken.replace.size(), broken.with);
  }
};

TEST_P(BrokenConfigTest, IsOneErrorWithLineKeyAndRemedy) {
  const LoadResult result = LoadText(TextOf(GetParam()), "test.conf", Environment);
  ASSERT_EQ(result.errors.size(), 1u)
      << (result.errors.empty() ? "" : result.errors.back().ToString());
  std::string begins = "test.conf";
  if (GetParam().line > 0) begins += ":" + std::to_string(GetParam().line);
  begins += ": " + GetParam().begins;
  EXPECT_EQ(result.errors[0].ToString().rfind(begins, 0), 0u)
      << "got:      " << result.errors[0].ToString() << "\nexpected: " << begins << "...";
}

INSTANTIATE_TEST_SUITE_P(All, BrokenConfigTest, ::testing::ValuesIn(kBroken),
                         [](const auto& instance) { return instance.param.name; });

TEST(BrokenConfigListTest, TextWithoutQuotesIsToldToStandInThem) {
  for (const std::string text : {"127.0.0.1:8000", "127.0.0.1", "10s", "localhost:8000", "tcp",
                                 "/run/app.sock", "${POD_IP}:8081"}) {
    const LoadResult result = LoadText("[[gate]]\nupstream = " + text + "\n", "test.conf",
                                       [](const char*) -> const char* { return nullptr; });
    ASSERT_EQ(result.errors.size(), 1u) << text;
    const std::string said = result.errors[0].ToString();
    EXPECT_EQ(said.rfind("test.conf:2: not TOML: ", 0), 0u) << said;
    EXPECT_NE(said.find("; text stands in quotes, like \"127.0.0.1:8080\""), std::string::npos)
        << said;
  }
}

TEST(BrokenConfigListTest, TheTextTheyBreakIsWithoutFault) {
  const LoadResult result =
      LoadText(kGood, "test.conf", [](const char*) -> const char* { return nullptr; });
  EXPECT_TRUE(result.errors.empty()) << result.errors[0].ToString();
  EXPECT_TRUE(result.warnings.empty()) << result.warnings[0].ToString();
}

// toml++ makes a table of each part and takes them down one inside the other: the stack overflowed.
TEST(BrokenConfigListTest, AKeyOfAnyNumberOfPartsIsAnErrorOfItsLine) {
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) deep += ".a";
  for (const std::string& text :
       {deep + " = 1\n", "[" + deep + "]\n", "[[" + deep + "]]\n", "x = {" + deep + " = 1}\n",
        "x = \"\"\"a\"\"\"\" # ends with one of its own\n" + deep + " = 1\n",
        "x = 'a\\' # a backslash is nothing special there\n" + deep + " = 1\n",
        "x = [\"a\\\"\", \"b\"]\n" + deep + " = 1\n"}) {
    const LoadResult result =
        LoadText(text, "test.conf", [](const char*) -> const char* { return nullptr; });
    ASSERT_EQ(result.errors.size(), 1U);
    const std::string said = result.errors[0].ToString();
    EXPECT_NE(said.find("a key has more than 16 parts"), std::string::npos) << said;
  }
}

TEST(BrokenConfigListTest, PointsInTextsAndCommentsArePartsOfNoKey) {
  const LoadResult result = LoadText(
      "# ................................\n[admin]\n"
      "allowed_hosts = [\"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r\",\n"
      "'1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17',\n"
      "\"\"\"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r\"\"\"]\n[[lease]]\nname = \"a\"\n",
      "test.conf", [](const char*) -> const char* { return nullptr; });
  EXPECT_TRUE(result.errors.empty()) << result.errors[0].ToString();
}

TEST(BrokenConfigListTest, VariablesAreNotPutInPlaceWithoutBound) {
  const std::string large(100 * 1000, 'x');
  std::string text = "[[lease]]\nname = \"";
  for (int i = 0; i < 1000; ++i) text += "${A}";
  const LoadResult result = LoadText(text + "\"\n", "test.conf", [&](const char* name) {
    return std::string_view(name) == "A" ? large.c_str() : nullptr;
  });
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_NE(result.errors[0].message.find("longer than 64KiB"), std::string::npos)
      << result.errors[0].message;
}

TEST(BrokenConfigListTest, ManyFaultsComeAllAtOnceInTheOrderOfTheFile) {
  const LoadResult result = LoadText(
      "[store]\ntype = \"zoo\"\n[[lease]]\nttl = 3\n[[gate]]\nname = \"g\"\nlisten = \"x\"\n"
      "[log]\nlevl = \"info\"\n[admin]\nlisten = \"0.0.0.0:1\"\n",
      "test.conf", [](const char*) -> const char* { return nullptr; });
  std::vector<std::string> keys;
  for (const Problem& problem : result.errors) keys.push_back(problem.key);
  const std::vector<std::string> expected = {"store.type",    "lease.name",  "lease.ttl",
                                             "gate.upstream", "gate.listen", "log.levl",
                                             "admin.listen"};
  EXPECT_EQ(keys, expected);
}

TEST(BrokenConfigListTest, SecretsAreInNoMessage) {
  const LoadResult result = LoadText(
      "[store]\ntype = \"redis\"\nredis.url = \"redis://u:hunter2@h:bad/0\"\n"
      "redis.password = [\"hunter2\"]\nredis.pasword = \"hunter2\"\n[[lease]]\nname = \"a\"\n",
      "test.conf", [](const char*) -> const char* { return nullptr; });
  EXPECT_GE(result.errors.size(), 2u);
  for (const Problem& problem : result.errors) {
    EXPECT_EQ(problem.ToString().find("hunter2"), std::string::npos) << problem.ToString();
  }
}

TEST(BrokenConfigListTest, AFileThatIsNotThereIsNamed) {
  const LoadResult result = LoadFile("/nonexistent/sidecar.conf");
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_EQ(result.errors[0].ToString().rfind("/nonexistent/sidecar.conf: cannot be read: No such "
                                              "file or directory",
                                              0),
            0u)
      << result.errors[0].ToString();
}

TEST(BrokenConfigListTest, ADirectoryIsNoConfiguration) {
  const LoadResult result = LoadFile("/tmp");
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_NE(result.errors[0].message.find("cannot be read: "), std::string::npos);
}

}  // namespace
}  // namespace leasehold::config
