#include "config/combinations.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "base/text.h"
#include "config/aws_checks.h"
#include "config/file_checks.h"
#include "config/option_table.h"
#include "config/option_value.h"
#include "health/app_check.h"
#include "store/redis_store.h"

namespace leasehold::config {
namespace {

using base::Address;
using base::Duration;
using base::FormatDuration;

constexpr TableId kNode{"node", 0};
constexpr TableId kStore{"store", 0};
constexpr TableId kExec{"exec", 0};
constexpr TableId kApp{"app", 0};
constexpr TableId kAdmin{"admin", 0};
constexpr TableId kSignal{"signal", 0};

constexpr size_t kNodeIdBytesMax = 253;  // the longest DNS name
constexpr size_t kPrefixBytesMax = 64;   // a key or file name keeps room for the lease's 128
constexpr size_t kHostNameBytes = 256;   // HOST_NAME_MAX is 64 on Linux
// DESIGN 4: hold_timeout = grace + hold-off + 5 s. The second is what a poll needs to be noticed
// in.
constexpr Duration kHoldRoom = Duration::Seconds(5);
constexpr Duration kPollRoom = Duration::Seconds(1);

TableId LeaseTable(size_t index) { return {"lease", index}; }
TableId GateTable(size_t index) { return {"gate", index}; }

bool OnlyBytes(std::string_view text, std::string_view more) {
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && more.find(c) == std::string_view::npos) return false;
  }
  return true;
}

void CheckNode(Document& document) {
  NodeOptions& node = document.config().node;
  if (node.id.empty()) {
    std::array<char, kHostNameBytes> name{};
    if (gethostname(name.data(), name.size() - 1) == 0) node.id = name.data();
    if (node.id.empty()) {
      document.Error(kNode, "id", "is empty, and this machine has no host name; give one");
    }
  }
  // It stands in headers, JSON and lock files, and people compare it by eye.
  if (node.id.size() > kNodeIdBytesMax || !OnlyBytes(node.id, "._-:")) {
    document.Error(kNode, "id", "must be at most 253 letters, digits, '.', '_', '-' or ':'",
                   base::JsonQuote(base::Printable(node.id)));
  }
  if (!node.state_dir.empty() && node.state_dir[0] != '/') {
    document.Error(kNode, "state_dir",
                   "must be an absolute path, or a restart from elsewhere forgets the tokens");
  }
}

// `<key>: <sentence>` or `<key> = <value> <sentence>` without what a Problem shows anyway.
std::string SentenceAfter(std::string_view key, std::string_view message) {
  message.remove_prefix(key.size());
  if (message.starts_with(" = ")) {
    const bool quoted = message.substr(3).starts_with("\"");
    const size_t end = message.find(quoted ? '"' : ' ', 4);
    message.remove_prefix(end == std::string_view::npos ? 0 : end + (quoted ? 1 : 0));
  }
  if (message.starts_with(":")) message.remove_prefix(1);
  return std::string(base::Trim(message));
}

// The store names one of its options first, or speaks of several: then the URL's line is shown.
void RedisError(Document& document, const std::string& message) {
  const size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.");
  const std::string key = message.substr(0, end);
  const std::string_view rest = std::string_view(message).substr(key.size());
  const bool of_one = FindOption("store", key, "redis") != nullptr &&
                      (rest.starts_with(": ") || rest.starts_with(" = "));
  document.Error(kStore, of_one ? key : "redis.url", of_one ? SentenceAfter(key, message) : message,
                 base::JsonQuote(MaskUrlPassword(document.config().store.redis.url)));
}

void CheckRedis(Document& document) {
  const store::RedisOptions& redis = document.config().store.redis;
  if (!redis.password.empty() && !redis.password_file.empty()) {
    document.Error(kStore, "redis.password", "is given beside redis.password_file; keep one");
  }
  if (redis.tls_cert_file.empty() != redis.tls_key_file.empty()) {
    const bool cert = redis.tls_key_file.empty();
    document.Error(kStore, cert ? "redis.tls_cert_file" : "redis.tls_key_file",
                   std::string("needs ") + (cert ? "redis.tls_key_file" : "redis.tls_cert_file") +
                       " beside it");
  }
  if (!document.Broken(kStore)) {
    const base::Status valid = store::ValidateRedisOptions(redis);
    if (!valid) RedisError(document, valid.error().message);
  }
  if (redis.allow_eviction) {
    document.Warn(kStore, "redis.allow_eviction",
                  "a Redis with maxmemory-policy allkeys-* may drop a lease record, and with it "
                  "the token");
  }
  if (!redis.tls_verify) {
    document.Warn(kStore, "redis.tls_verify", "anyone on the way can pose as the store");
  }
}

void CheckStore(Document& document) {
  const store::Options& options = document.config().store;
  if (options.prefix.empty() || options.prefix.size() > kPrefixBytesMax ||
      options.prefix[0] == '.' || !OnlyBytes(options.prefix, "._-:")) {
    document.Error(kStore, "prefix",
                   "must be 1 to 64 letters, digits, '.', '_', '-' or ':', not beginning with '.'");
  }
  if (options.type == "redis") CheckRedis(document);
  if (options.type == "dynamodb") CheckDynamoDb(document);
  if (options.type != "file") return;
  if (options.file.dir.empty()) {
    document.Error(kStore, "file.dir", "must name a directory, like \"/var/lib/leasehold/store\"");
  } else if (options.file.dir[0] != '/') {
    document.Warn(kStore, "file.dir",
                  "depends on where leasehold is started; two instances with different stores both "
                  "hold the lease; write an absolute path");
  }
  if (options.file.durability == store::Durability::kProcessCrashSafe) {
    document.Warn(kStore, "file.durability",
                  "a power loss may set a lease back to an older token; \"strict\" does not");
  }
}

// "<option> = <value>: <sentence>", as lease::Validate and lease::Warnings write it. A value in
// quotes may hold a colon of its own; no sentence has one behind a quote.
struct OptionLine {
  std::string option, value, sentence;
};
OptionLine Parse(const std::string& line) {
  const size_t equals = line.find(" = ");
  const bool quoted = equals != std::string::npos && line.compare(equals + 3, 1, "\"") == 0;
  const size_t colon =
      quoted ? line.rfind("\": ") + 1 : line.find(": ", equals == std::string::npos ? 0 : equals);
  if (equals == std::string::npos || colon == std::string::npos) return {"", "", line};
  return {line.substr(0, equals), line.substr(equals + 3, colon - equals - 3),
          line.substr(colon + 2)};
}

void CheckLeases(Document& document) {
  const std::vector<lease::Options>& leases = document.config().leases;
  for (size_t i = 0; i < leases.size(); ++i) {
    const TableId table = LeaseTable(i);
    for (size_t j = 0; j < i; ++j) {
      if (leases[j].name.empty() || leases[j].name != leases[i].name) continue;
      document.Error(table, "name", "is the name of an earlier [[lease]] too; each needs its own");
      break;
    }
    if (document.Broken(table)) continue;
    for (const base::Error& error : lease::Validate(leases[i])) {
      const OptionLine line = Parse(error.message);
      document.Error(table, line.option, line.sentence, line.value);
    }
    if (document.Broken(table)) continue;
    for (const std::string& warning : lease::Warnings(leases[i])) {
      const OptionLine line = Parse(warning);
      document.Warn(table, line.option, line.sentence, line.value);
    }
  }
}

std::string LeaseNames(const Config& config) {
  std::string names;
  for (const lease::Options& lease : config.leases) {
    names += (names.empty() ? "" : ", ") + base::JsonQuote(base::Printable(lease.name));
  }
  return names;
}

// The gate's lease by its index, filled in when there is only one.
std::optional<size_t> LeaseOf(Document& document, size_t gate_index) {
  Config& config = document.config();
  gate::Options& gate = config.gates[gate_index];
  if (config.leases.empty()) return std::nullopt;
  // Two of one name are an error of their own; the gate need not be told of it.
  const bool one_name =
      std::all_of(config.leases.begin(), config.leases.end(),
                  [&](const lease::Options& lease) { return lease.name == config.leases[0].name; });
  if (gate.lease.empty() && one_name) gate.lease = config.leases[0].name;
  for (size_t i = 0; i < config.leases.size(); ++i) {
    if (!gate.lease.empty() && config.leases[i].name == gate.lease) return i;
  }
  if (gate.lease.empty() && document.Broken(LeaseTable(0))) return std::nullopt;
  document.Error(
      GateTable(gate_index), "lease",
      gate.lease.empty()
          ? "is missing; with several leases each gate names its own: one of " + LeaseNames(config)
          : "no [[lease]] has this name; there are " + LeaseNames(config));
  return std::nullopt;
}

void CheckHold(Document& document, size_t index, const lease::Options& lease) {
  gate::Options& gate = document.config().gates[index];
  const lease::Timing timing = lease::Derive(lease);
  const Duration least = timing.grace + timing.hold_off;
  if (gate.hold_timeout == Duration::Zero()) {
    gate.hold_timeout = least + Max(kHoldRoom, timing.poll_interval + kPollRoom);
    return;
  }
  if (gate.standby != gate::StandbyPolicy::kHold && !gate.forwards()) return;
  const Duration floor = least + timing.poll_interval;
  if (gate.hold_timeout > floor) return;
  document.Error(GateTable(index), "hold_timeout",
                 "must exceed step_down_grace + step_down_hold_off + one poll_interval of lease " +
                     base::JsonQuote(lease.name) + " = " + FormatDuration(floor) +
                     ", or a planned move refuses what it held");
}

bool IsWildcard(const Address& address) {
  return address.host == "0.0.0.0" || address.host == "::";
}

// Forwarding takes two: where the others' traffic arrives, and an address that leads there.
void CheckPeers(Document& document, size_t index) {
  const TableId table = GateTable(index);
  const gate::Options& gate = document.config().gates[index];
  if (gate.forwards() && gate.outbound) {
    document.Error(table, "standby",
                   "cannot go with direction = \"outbound\": what the application sends out is not "
                   "the other instance's; use \"refuse\", \"close\" or \"hold\"");
  }
  if (gate.peer_listen.empty()) {
    const std::string needs = " needs peer_listen beside it, like \"0.0.0.0:8081\"";
    if (gate.forwards()) {
      document.Error(
          table, "standby",
          needs.substr(1) + ", because the other instances forward here while this one holds");
    } else if (!gate.advertise.empty() || !gate.peer_secret_file.empty()) {
      const char* key = gate.advertise.empty() ? "peer_secret_file" : "advertise";
      document.Error(table, key, needs.substr(1));
    }
    return;
  }
  if (gate.advertise.empty() && IsWildcard(gate.peer_listen)) {
    document.Error(
        table, "peer_listen",
        "listens everywhere, which is no address to connect to; give advertise too, like "
        "\"${POD_IP}:" +
            std::to_string(gate.peer_listen.port) + "\"");
  } else if (IsWildcard(gate.advertise)) {
    document.Error(
        table, "advertise",
        "is no address to connect to; write this instance's own, like \"${POD_IP}:8081\"");
  }
  if (gate.peer_secret_file.empty() && !gate.peer_listen.IsLoopback()) {
    document.Warn(table, "peer_listen",
                  "whoever reaches it can pose as a sidecar and claim any client address; give "
                  "peer_secret_file, or let nobody else reach it");
  }
}

void CheckGate(Document& document, size_t index) {
  const TableId table = GateTable(index);
  const gate::Options& gate = document.config().gates[index];
  if (gate.name.size() > 64 || (gate.name.empty() && document.Given(table, "name")) ||
      !OnlyBytes(gate.name, "._-")) {
    document.Error(table, "name", "must be 1 to 64 letters, digits, '.', '_' or '-'");
  }
  for (size_t j = 0; j < index; ++j) {
    if (gate.name.empty() || document.config().gates[j].name != gate.name) continue;
    document.Error(table, "name", "is the name of an earlier [[gate]] too; each needs its own");
    break;
  }
  const std::optional<size_t> lease = LeaseOf(document, index);
  if (lease && !document.Broken(LeaseTable(*lease))) {
    CheckHold(document, index, document.config().leases[*lease]);
  }
  if (gate.type == gate::Type::kSqs) CheckSqsGate(document, index);
  if (document.Broken(table)) return;
  CheckPeers(document, index);
  if (gate.standby == gate::StandbyPolicy::kHold && gate.max_held == 0) {
    document.Error(table, "max_held",
                   "lets nothing wait, and standby = \"hold\" is to wait; give at least 1", "0");
  } else if (gate.forwards() && gate.max_held == 0) {
    document.Warn(table, "max_held",
                  "lets nothing wait: a planned move then refuses what comes while it lasts");
  }
  if (gate.type != gate::Type::kSqs && gate.upstream.kind == Address::Kind::kTcp &&
      gate.upstream.port == 0) {
    document.Error(table, "upstream", "port 0 is no port to connect to; write the application's");
  }
  if (!gate.outbound && !gate.upstream.IsLoopback()) {
    document.Warn(table, "upstream",
                  "others may reach it past the gate, also while this instance does not hold the "
                  "lease; best is a loopback address or a Unix socket");
  }
  if (gate.outbound && !gate.listen.IsLoopback()) {
    document.Warn(table, "listen",
                  "others than the application may go out through this gate; best is a loopback "
                  "address or a Unix socket");
  }
  if (gate.on_loss == gate::OnLoss::kFinish) {
    document.Warn(
        table, "on_loss",
        "what is in flight goes on after another instance holds the lease; only safe where "
        "the resource checks the fencing token");
  }
}

struct Listen {
  TableId table;
  std::string_view key;
  std::string who;
  Address address;
};

std::string Host(const Address& address) {
  return address.host == "localhost" ? "127.0.0.1" : address.host;
}

// Would the second bind fail? A wildcard takes the port on every address of its family; "::" takes
// both families (Linux' default for IPv6 sockets, which loop::Listener keeps).
bool SamePlace(const Address& a, const Address& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Address::Kind::kUnix) return a.path == b.path;
  if (a.port != b.port || a.port == 0) return false;
  const std::string left = Host(a);
  const std::string right = Host(b);
  if (left == right || left == "::" || right == "::") return true;
  const bool v4 = left.find(':') == std::string::npos && right.find(':') == std::string::npos;
  return v4 && (left == "0.0.0.0" || right == "0.0.0.0");
}

std::vector<Listen> Listens(const Document& document) {
  const Config& config = document.config();
  std::vector<Listen> listens;
  for (size_t i = 0; i < config.gates.size(); ++i) {
    if (document.Broken(GateTable(i)) && config.gates[i].listen.host.empty() &&
        config.gates[i].listen.path.empty()) {
      continue;
    }
    listens.push_back({GateTable(i), "listen", "gate " + base::JsonQuote(config.gates[i].name),
                       config.gates[i].listen});
    if (!config.gates[i].peer_listen.empty()) {
      listens.push_back({GateTable(i), "peer_listen",
                         "peer_listen of gate " + base::JsonQuote(config.gates[i].name),
                         config.gates[i].peer_listen});
    }
  }
  if (const auto admin = base::ParseAddress(config.admin.listen); admin) {
    listens.push_back({kAdmin, "listen", "[admin]", *admin});
  }
  if (!config.signal.socket.empty()) {
    Address address;
    address.kind = Address::Kind::kUnix;
    address.path = config.signal.socket;
    listens.push_back({kSignal, "socket", "[signal]", address});
  }
  return listens;
}

// The other instances would send what they forward to where clients come in: round and round.
void CheckAdvertise(Document& document, size_t index, const std::vector<Listen>& listens) {
  const Address& advertise = document.config().gates[index].advertise;
  for (const Listen& listen : listens) {
    if (listen.key != "listen" || !SamePlace(advertise, listen.address)) continue;
    const std::string where =
        listen.table == kAdmin ? "the API answers" : "clients of " + listen.who + " arrive";
    // Where the host differs, a port mapping may lead elsewhere.
    if (Host(advertise) == Host(listen.address)) {
      document.Error(GateTable(index), "advertise",
                     "is where " + where + "; name peer_listen's address");
    } else if (!IsWildcard(advertise)) {
      document.Warn(GateTable(index), "advertise",
                    "has the port at which " + where + " (" + listen.address.ToString() +
                        "); unless a port mapping leads elsewhere, name peer_listen's address");
    }
    return;
  }
}

void CheckListens(Document& document) {
  const std::vector<Listen> listens = Listens(document);
  for (size_t i = 0; i < listens.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!SamePlace(listens[i].address, listens[j].address)) continue;
      document.Error(listens[i].table, listens[i].key,
                     "is the same place as " + listens[j].who + " (" +
                         listens[j].address.ToString() + "); each needs its own",
                     base::JsonQuote(listens[i].address.ToString()));
      break;
    }
  }
  const std::vector<gate::Options>& gates = document.config().gates;
  for (size_t i = 0; i < gates.size(); ++i) {
    if (!gates[i].advertise.empty()) CheckAdvertise(document, i, listens);
    const bool given = !gates[i].upstream.host.empty() || !gates[i].upstream.path.empty();
    if (!given || !SamePlace(gates[i].listen, gates[i].upstream)) continue;
    if (!gates[i].upstream.IsLoopback()) continue;  // the same port of another machine
    document.Error(GateTable(i), "upstream",
                   "is where the gate itself listens; write the application's address");
  }
}

// The command's lease, filled in when there is only one; with several, only exec itself needs it.
void CheckExec(Document& document) {
  Config& config = document.config();
  gate::ProcessOptions& exec = config.exec;
  if (exec.lease.empty() && config.leases.size() == 1) exec.lease = config.leases[0].name;
  if (exec.lease.empty() || document.Broken(kExec)) return;
  const auto lease =
      std::find_if(config.leases.begin(), config.leases.end(),
                   [&](const lease::Options& each) { return each.name == exec.lease; });
  if (lease == config.leases.end()) {
    if (!config.leases.empty()) {
      document.Error(kExec, "lease", "no [[lease]] has this name; there are " + LeaseNames(config));
    }
    return;
  }
  if (exec.stop_timeout <= lease->step_down_grace) return;
  if (!document.Given(kExec, "stop_timeout")) {
    exec.stop_timeout = lease->step_down_grace / 2;  // the rest is for what is in flight in gates
    return;
  }
  document.Error(kExec, "stop_timeout",
                 "must not exceed step_down_grace = " + FormatDuration(lease->step_down_grace) +
                     " of lease " + base::JsonQuote(lease->name) +
                     ", of which it is a part: the lease is released then");
}

void CheckApp(Document& document) {
  const health::Options& app = document.config().app;
  if (!app.check.empty()) {
    const base::Status valid = health::ValidateCheck(app.check);
    if (!valid) {
      const std::string& message = valid.error().message;
      const std::string value = base::JsonQuote(app.check);
      document.Error(kApp, "check",
                     message.starts_with(value) ? SentenceAfter(value, message) : message);
    }
  }
  if (app.check.empty() || document.Broken(kApp)) return;
  if (app.unready_after <= app.interval) {
    document.Error(kApp, "unready_after",
                   "must exceed interval = " + FormatDuration(app.interval) +
                       ", or a step-down comes before the next check could have been good",
                   base::JsonQuote(FormatDuration(app.unready_after)));
  } else if (app.unready_after < app.interval + app.timeout) {
    document.Warn(kApp, "unready_after",
                  "a single slow check already costs the lease; interval + timeout is " +
                      FormatDuration(app.interval + app.timeout),
                  base::JsonQuote(FormatDuration(app.unready_after)));
  }
}

void CheckAdmin(Document& document) {
  const admin::AdminOptions& admin = document.config().admin;
  if (document.Broken(kAdmin) || admin.listen.empty() || !admin.token_file.empty()) return;
  const base::Result<Address> address = base::ParseAddress(admin.listen);
  if (address && !address->IsLoopback()) {
    document.Error(kAdmin, "listen",
                   "others could step this instance down; give a token_file, or listen on "
                   "127.0.0.1");
  }
}

void CheckSignal(Document& document) {
  const std::string& socket = document.config().signal.socket;
  if (socket.empty()) return;
  const base::Result<Address> address = base::ParseAddress("unix:" + socket);
  if (socket[0] != '/') {
    document.Error(kSignal, "socket", "must be an absolute path, like \"/run/leasehold.sock\"");
  } else if (!address) {
    document.Error(kSignal, "socket", "the path must be at most 107 bytes long");
  }
}

}  // namespace

void CheckCombinations(Document& document) {
  CheckNode(document);
  CheckStore(document);
  CheckLeases(document);
  for (size_t i = 0; i < document.config().gates.size(); ++i) CheckGate(document, i);
  CheckListens(document);
  CheckExec(document);
  CheckApp(document);
  CheckAdmin(document);
  CheckSignal(document);
  CheckFiles(document);
}

}  // namespace leasehold::config
