#include "config/option_table.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/text.h"

namespace leasehold::config {
namespace {

template <typename T>
struct OwnerOf;
template <typename Class, typename Field>
struct OwnerOf<Field Class::*> {
  using Type = Class;
};

template <auto First, auto...>
auto& Root(const Scope& scope) {
  using Class = typename OwnerOf<decltype(First)>::Type;
  if constexpr (std::is_same_v<Class, lease::Options>) {
    return *scope.lease;
  } else if constexpr (std::is_same_v<Class, gate::Options>) {
    return *scope.gate;
  } else {
    static_assert(std::is_same_v<Class, Config>, "a path begins at Config, a lease or a gate");
    return *scope.config;
  }
}

// The field at the end of a path of member pointers.
template <auto... Path>
Slot Of(const Scope& scope) {
  auto& field = (Root<Path...>(scope).*....*Path);
  using Field = std::remove_reference_t<decltype(field)>;
  if constexpr (std::is_enum_v<Field>) {
    return WordSlot{&field,
                    [](const void* f) { return static_cast<int>(*static_cast<const Field*>(f)); },
                    [](void* f, int word) { *static_cast<Field*>(f) = static_cast<Field>(word); }};
  } else {
    return &field;
  }
}

using C = Config;
using S = store::Options;
using F = store::FileOptions;
using R = store::RedisOptions;
using Y = store::DynamoDbOptions;
using L = lease::Options;
using G = gate::Options;
using Q = gate::SqsOptions;
using H = health::Options;
using A = admin::AdminOptions;
using U = admin::SignalOptions;
using K = admin::HookOptions;
using D = admin::AuditOptions;
using P = gate::ProcessOptions;
using O = observe::LogOptions;

// A word's place in its list is its enum's value; an empty word stands for one that does not apply.
// Ranges: what a person could mean, so that a slip of the unit ("10h" for "10ms") is caught.
constexpr std::string_view kTimeout = "1ms..1h";
constexpr std::string_view kPerhapsLong = "1ms..8784h";

constexpr std::array<std::string_view, 11> kSections = {
    "node", "store", "lease", "gate", "exec", "app", "admin", "signal", "hooks", "audit", "log"};

const Option kOptions[] = {
    {"node", "id", "", Kind::kText, "\"${POD_NAME:-}\"", "",
     "names this instance in records, events and headers; empty: the host name",
     Of<&C::node, &NodeOptions::id>},
    {"node", "state_dir", "", Kind::kText, "\"\"", "",
     "remembers the highest token and proves a former process dead, so that a restart costs no "
     "ttl; empty: none",
     Of<&C::node, &NodeOptions::state_dir>},

    {"store", "type", "", Kind::kWord, "\"file\"", "file|redis|dynamodb",
     "where lease records live: file for instances on one host, redis or dynamodb across hosts",
     Of<&C::store, &S::type>, "s3|etcd|kubernetes|quorum"},
    {"store", "prefix", "", Kind::kText, "\"leasehold\"", "",
     "goes before every name in the store, so that two teams' \"orders\" do not meet",
     Of<&C::store, &S::prefix>},
    {"store", "file.dir", "file", Kind::kText, "\"${HOME:-/var/tmp}/.local/state/leasehold\"", "",
     "the same directory for all instances, on a local disk; created if missing",
     Of<&C::store, &S::file, &F::dir>},
    {"store", "file.durability", "file", Kind::kWord, "\"strict\"", "strict|process_crash_safe",
     "strict: fsync each write, so that a power loss cannot set a token back",
     Of<&C::store, &S::file, &F::durability>},
    {"store", "redis.url", "redis", Kind::kText, "\"redis://127.0.0.1:6379/0\"", "",
     "redis:// or rediss:// (TLS), [user[:password]@]host[:port][/database]",
     Of<&C::store, &S::redis, &R::url>},
    {"store", "redis.username", "redis", Kind::kText, "\"\"", "", "ACL user; goes before the URL's",
     Of<&C::store, &S::redis, &R::username>},
    {"store", "redis.password", "redis", Kind::kText, "\"\"", "",
     "goes before the URL's; better from a file or ${VAR} than written here",
     Of<&C::store, &S::redis, &R::password>, "", true},
    {"store", "redis.password_file", "redis", Kind::kText, "\"\"", "",
     "the password's file, read again at every connect, so that it may be rotated",
     Of<&C::store, &S::redis, &R::password_file>},
    {"store", "redis.connect_timeout", "redis", Kind::kDuration, "\"2s\"", "10ms..1m",
     "the longest a connection may take to come up, name and TLS included",
     Of<&C::store, &S::redis, &R::connect_timeout>},
    {"store", "redis.command_timeout", "redis", Kind::kDuration, "\"5s\"", "10ms..1m",
     "the longest any command may take; a lease call's own renew_call_timeout is usually less",
     Of<&C::store, &S::redis, &R::command_timeout>},
    {"store", "redis.allow_eviction", "redis", Kind::kBoolean, "false", "",
     "start although maxmemory-policy is allkeys-*, which can evict a lease record",
     Of<&C::store, &S::redis, &R::allow_eviction>},
    {"store", "redis.wait_replicas", "redis", Kind::kInteger, "0", "0..64",
     "a write counts only when so many replicas have it: a promoted replica then knows the lease",
     Of<&C::store, &S::redis, &R::wait_replicas>},
    {"store", "redis.tls_ca_file", "redis", Kind::kText, "\"\"", "",
     "certificates to trust; empty: the system's", Of<&C::store, &S::redis, &R::tls_ca_file>},
    {"store", "redis.tls_cert_file", "redis", Kind::kText, "\"\"", "",
     "client certificate chain, with tls_key_file", Of<&C::store, &S::redis, &R::tls_cert_file>},
    {"store", "redis.tls_key_file", "redis", Kind::kText, "\"\"", "",
     "the client certificate's private key", Of<&C::store, &S::redis, &R::tls_key_file>},
    {"store", "redis.tls_server_name", "redis", Kind::kText, "\"\"", "",
     "the name the server's certificate must carry; empty: the URL's host",
     Of<&C::store, &S::redis, &R::tls_server_name>},
    {"store", "redis.tls_verify", "redis", Kind::kBoolean, "true", "",
     "false trusts any certificate: for experiments only",
     Of<&C::store, &S::redis, &R::tls_verify>},
    {"store", "dynamodb.table", "dynamodb", Kind::kText, "\"leasehold\"", "",
     "the table, whose only key is pk, a string", Of<&C::store, &S::dynamodb, &Y::table>},
    {"store", "dynamodb.region", "dynamodb", Kind::kText, "\"\"", "",
     "like eu-central-1; empty: AWS_REGION's, or the profile's",
     Of<&C::store, &S::dynamodb, &Y::region>},
    {"store", "dynamodb.endpoint", "dynamodb", Kind::kText, "\"\"", "",
     "http:// or https://, host and port; empty: AWS_ENDPOINT_URL_DYNAMODB's, or the region's own",
     Of<&C::store, &S::dynamodb, &Y::endpoint>},
    {"store", "dynamodb.profile", "dynamodb", Kind::kText, "\"\"", "",
     "of the shared AWS files, for credentials and region; empty: the usual chain of sources",
     Of<&C::store, &S::dynamodb, &Y::profile>},
    {"store", "dynamodb.connect_timeout", "dynamodb", Kind::kDuration, "\"2s\"", "10ms..1m",
     "the longest a connection may take to come up, name and TLS included",
     Of<&C::store, &S::dynamodb, &Y::connect_timeout>},
    {"store", "dynamodb.command_timeout", "dynamodb", Kind::kDuration, "\"5s\"", "10ms..1m",
     "the longest any call may take; a lease call's own renew_call_timeout is usually less",
     Of<&C::store, &S::dynamodb, &Y::command_timeout>},
    {"store", "dynamodb.create_table", "dynamodb", Kind::kBoolean, "false", "",
     "make the table at start if it is missing, billed per request: for development",
     Of<&C::store, &S::dynamodb, &Y::create_table>},

    {"lease", "name", "", Kind::kText, "", "",
     "what the instances compete for; the same name in all of them", Of<&L::name>},
    {"lease", "ttl", "", Kind::kDuration, "\"10s\"", "",
     "after a crash nobody serves for about this long; a store outage of three quarters of it goes "
     "unnoticed",
     Of<&L::ttl>},
    {"lease", "renew_interval", "", Kind::kDurationOrAuto, "\"auto\"", "",
     "pause between renewals, plus up to 1/8 of it; auto: (ttl x 3 / (max_renew_fails x 4) - "
     "renew_call_timeout) x 8/9",
     Of<&L::renew_interval>},
    {"lease", "max_renew_fails", "", Kind::kInteger, "3", "1..20",
     "renewal rounds that may fail in a row before the store is asked once more and a drain begins",
     Of<&L::max_renew_fails>},
    {"lease", "renew_call_timeout", "", Kind::kDurationOrAuto, "\"auto\"", "",
     "one store call; auto: the least of 5s, ttl/6 and a third of a renewal round",
     Of<&L::renew_call_timeout>},
    {"lease", "safety_margin", "", Kind::kDurationOrAuto, "\"auto\"", "",
     "the permit ends so long before the lease; auto: 2 % of ttl, at most 1s, at least 20ms and 2 "
     "x max_clock_drift x ttl",
     Of<&L::safety_margin>},
    {"lease", "max_clock_drift", "", Kind::kNumber, "0.001", "0..0.05",
     "how much a clock's rate may be off, as a ratio; 0.001 is ten times a bad crystal",
     Of<&L::max_clock_drift>},
    {"lease", "step_down_grace", "", Kind::kDuration, "\"20s\"", "",
     "the longest that work in flight may take to finish in a step-down", Of<&L::step_down_grace>},
    {"lease", "drain_tunnels", "", Kind::kDuration, "\"2s\"", "",
     "the part of the grace that WebSockets and raw TCP get, so that one idle one delays no move",
     Of<&L::drain_tunnels>},
    {"lease", "step_down_hold_off", "", Kind::kDurationOrAuto, "\"auto\"", "",
     "pause after a release before this instance competes again; auto: 5s, or poll_interval + "
     "renew_call_timeout + 1s if longer",
     Of<&L::step_down_hold_off>},
    {"lease", "poll_interval", "", Kind::kDurationOrAuto, "\"auto\"", "",
     "how often a standby reads the record where the store cannot push; auto: ttl/10, from 250ms "
     "to 5s",
     Of<&L::poll_interval>},
    {"lease", "fail_if_held", "", Kind::kBoolean, "false", "",
     "end at start when another live instance holds the lease, instead of standing by",
     Of<&L::fail_if_held>},
    {"lease", "on_token_regression", "", Kind::kWord, "\"continue\"", "continue|refuse",
     "when the store shows a lower token than was seen before: go on above it, or stop competing",
     Of<&L::on_token_regression>},

    {"gate", "name", "", Kind::kText, "", "", "names the gate in metrics, events and logs",
     Of<&G::name>},
    {"gate", "type", "", Kind::kWord, "\"http\"", "tcp|http|sqs",
     "http: requests, one by one; tcp: any protocol, byte for byte; sqs: the application's calls "
     "to Amazon SQS",
     Of<&G::type>, "mqtt"},
    {"gate", "lease", "", Kind::kText, "\"\"", "",
     "the lease that opens it; may be left out when there is one", Of<&G::lease>},
    {"gate", "listen", "", Kind::kAddress, "", "",
     "where clients connect: host:port, [v6]:port or unix:/path; port 0: any free one",
     Of<&G::listen>},
    {"gate", "upstream", "http|tcp", Kind::kAddress, "", "",
     "the application; best where nobody can reach it past the gate: loopback or a Unix socket",
     Of<&G::upstream>},
    {"gate", "upstream", "sqs", Kind::kText, "\"\"", "",
     "SQS' endpoint, http:// or https://; empty: AWS_ENDPOINT_URL_SQS', or the region's own",
     Of<&G::sqs, &Q::endpoint>},
    {"gate", "region", "sqs", Kind::kText, "\"\"", "",
     "like eu-central-1; empty: AWS_REGION's, or the profile's", Of<&G::sqs, &Q::region>},
    {"gate", "profile", "sqs", Kind::kText, "\"\"", "",
     "of the shared AWS files, for credentials and region; empty: the usual chain of sources",
     Of<&G::sqs, &Q::profile>},
    {"gate", "standby_send", "sqs", Kind::kWord, "\"reject\"", "reject|pass",
     "SendMessage and SendMessageBatch while not holding: reject, so that SDKs try again, or pass",
     Of<&G::sqs, &Q::standby_send>},
    {"gate", "max_polls", "sqs", Kind::kInteger, "1000", "1..100000",
     "ReceiveMessage calls that may wait at a time; more are throttled",
     Of<&G::sqs, &Q::max_polls>},
    {"gate", "max_in_flight", "sqs", Kind::kInteger, "20000", "1..1000000",
     "messages received and not yet deleted or visible again; beyond it nothing more is received",
     Of<&G::sqs, &Q::max_in_flight>},
    {"gate", "standby", "http", Kind::kWord, "\"reject\"", "||reject|hold|forward",
     "while not holding: reject with 503 at once, hold requests, bounded, until the lease comes, "
     "or "
     "forward them to the holder's gate",
     Of<&G::standby>},
    {"gate", "standby", "tcp", Kind::kWord, "\"refuse\"", "refuse|close||hold|forward",
     "while not holding: refuse (do not listen), close after accepting, hold connections, or "
     "forward them to the holder's gate",
     Of<&G::standby>},
    {"gate", "peer_listen", "http|tcp", Kind::kAddress, "\"\"", "",
     "where other sidecars' traffic arrives; serves only while holding, never forwards; empty: "
     "none",
     Of<&G::peer_listen>},
    {"gate", "advertise", "http|tcp", Kind::kAddress, "\"\"", "",
     "what the lease record tells other sidecars to connect to; port 0: peer_listen's; empty: "
     "peer_listen",
     Of<&G::advertise>},
    {"gate", "peer_secret_file", "http|tcp", Kind::kText, "\"\"", "",
     "a file with the secret that this gate's sidecars share, so that nobody else speaks at "
     "peer_listen",
     Of<&G::peer_secret_file>},
    {"gate", "on_loss", "http|tcp", Kind::kWord, "\"cut\"", "cut|finish",
     "when the lease is lost: cut what is in flight, or let it finish (only where a fence protects "
     "the resource)",
     Of<&G::on_loss>},
    {"gate", "direction", "tcp", Kind::kWord, "\"inbound\"", "inbound|outbound",
     "outbound: from the application; stays open in a drain until just before the release",
     Of<&G::outbound>},
    {"gate", "max_connections", "", Kind::kInteger, "10000", "1..1000000",
     "more are closed at once", Of<&G::max_connections>},
    {"gate", "max_held", "", Kind::kInteger, "1000", "0..1000000",
     "requests or connections that may wait for the lease; more are refused", Of<&G::max_held>},
    {"gate", "hold_timeout", "", Kind::kDurationOrAuto, "\"auto\"", kPerhapsLong,
     "the longest a held one waits; auto: step_down_grace + step_down_hold_off + 5s, more where "
     "polls are slow",
     Of<&G::hold_timeout>},
    {"gate", "connect_timeout", "", Kind::kDuration, "\"2s\"", kTimeout,
     "connecting to the upstream", Of<&G::connect_timeout>},
    {"gate", "tunnel_idle_timeout", "http|tcp", Kind::kDuration, "\"1h\"", kPerhapsLong,
     "a TCP connection or WebSocket without a byte in either direction",
     Of<&G::tunnel_idle_timeout>},
    {"gate", "buffer_bytes", "http|tcp", Kind::kSize, "\"64KiB\"", "4KiB..16MiB",
     "per connection and direction; beyond it the faster side is made to wait",
     Of<&G::buffer_bytes>},
    {"gate", "head_bytes_max", "http|sqs", Kind::kSize, "\"16KiB\"", "1KiB..1MiB",
     "request or response head; a larger request head is answered 431", Of<&G::head_bytes_max>},
    {"gate", "target_bytes_max", "http|sqs", Kind::kSize, "\"8KiB\"", "64B..1MiB",
     "request target; a longer one is answered 414", Of<&G::target_bytes_max>},
    {"gate", "body_bytes_max", "http", Kind::kSize, "\"0B\"", "",
     "request body; a larger one is answered 413; 0B: no limit", Of<&G::body_bytes_max>},
    {"gate", "body_bytes_max", "sqs", Kind::kSize, "\"8MiB\"", "1KiB..64MiB",
     "request body; 1 MiB of messages, which is the most SQS takes, can be 6 MiB escaped",
     Of<&G::body_bytes_max>},
    {"gate", "head_timeout", "http|sqs", Kind::kDuration, "\"10s\"", kTimeout,
     "from a request's first byte to the end of its head; then 408", Of<&G::head_timeout>},
    {"gate", "idle_timeout", "http|sqs", Kind::kDuration, "\"75s\"", kPerhapsLong,
     "a client connection between two requests", Of<&G::idle_timeout>},
    {"gate", "body_timeout", "http|sqs", Kind::kDuration, "\"30s\"", kTimeout,
     "between two reads of a request body, then 408; a client that takes nothing of its answer for "
     "so long is cut",
     Of<&G::body_timeout>},
    {"gate", "response_timeout", "http", Kind::kDuration, "\"1m\"", kPerhapsLong,
     "until the application's answer begins, then 504; between two reads of it, then it is cut",
     Of<&G::response_timeout>},
    {"gate", "upstream_idle_timeout", "http|sqs", Kind::kDuration, "\"30s\"", kPerhapsLong,
     "a pooled connection to the application; keep it below the application's own keep-alive",
     Of<&G::upstream_idle_timeout>},
    {"gate", "upstream_idle_max", "http|sqs", Kind::kInteger, "128", "0..100000",
     "pooled connections kept; 0: a new one for each request", Of<&G::upstream_idle_max>},

    {"exec", "lease", "", Kind::kText, "\"\"", "",
     "the lease that `leasehold exec -- CMD` runs its command under; may be left out when there is "
     "one",
     Of<&C::exec, &P::lease>},
    {"exec", "restart", "", Kind::kWord, "\"never\"", "never|on_failure|always",
     "when the command ends by itself: never ends leasehold with its exit code, on_failure and "
     "always start it again while the lease is held",
     Of<&C::exec, &P::restart>},
    {"exec", "restart_delay", "", Kind::kDuration, "\"1s\"", "10ms..1h",
     "pause before it is started again; doubles to 30s while it fails at once",
     Of<&C::exec, &P::restart_delay>},
    {"exec", "stop_timeout", "", Kind::kDuration, "\"5s\"", "1ms..1h",
     "from TERM to KILL in a step-down, a part of step_down_grace; not given: half of that at most",
     Of<&C::exec, &P::stop_timeout>},

    {"app", "check", "", Kind::kText, "\"\"", "",
     "asks whether the application is ready: http://host:port/path, tcp://host:port or "
     "exec:command; empty: always",
     Of<&C::app, &H::check>},
    {"app", "interval", "", Kind::kDuration, "\"1s\"", "10ms..1h",
     "from the start of one check to the next", Of<&C::app, &H::interval>},
    {"app", "timeout", "", Kind::kDuration, "\"1s\"", "10ms..1h",
     "a check that takes longer has failed", Of<&C::app, &H::timeout>},
    {"app", "unready_after", "", Kind::kDuration, "\"5s\"", "10ms..24h",
     "unready for so long since the last good check: step down", Of<&C::app, &H::unready_after>},
    {"app", "on_unready", "", Kind::kWord, "\"step_down\"", "step_down|keep",
     "keep: hold the lease although the application is unready", Of<&C::app, &H::on_unready>},

    {"admin", "listen", "", Kind::kAddress, "\"127.0.0.1:9090\"", "",
     "the HTTP API, probes and metrics; beyond loopback only with a token_file; empty: none",
     Of<&C::admin, &A::listen>},
    {"admin", "token_file", "", Kind::kText, "\"\"", "",
     "a file with the token that calls which change state must carry; empty: none",
     Of<&C::admin, &A::token_file>},
    {"admin", "allowed_hosts", "", Kind::kTextList, "[]", "",
     "more Host names that are ours, beside the listen address and localhost",
     Of<&C::admin, &A::allowed_hosts>},
    {"admin", "max_connections", "", Kind::kInteger, "256", "1..65536", "more are closed at once",
     Of<&C::admin, &A::max_connections>},

    {"signal", "socket", "", Kind::kText, "\"\"", "",
     "Unix socket that tells of step-downs before they happen and waits for listeners; empty: none",
     Of<&C::signal, &U::socket>},
    {"signal", "allow_uids", "", Kind::kIntegerList, "[]", "0..4294967294",
     "user ids that may connect; empty: whoever the file mode 0660 lets in",
     Of<&C::signal, &U::allow_uids>},
    {"signal", "max_clients", "", Kind::kInteger, "64", "1..65536", "more are closed at once",
     Of<&C::signal, &U::max_clients>},

    {"hooks", "on_active", "", Kind::kText, "\"\"", "",
     "a command run after the gates have opened; empty: none", Of<&C::hooks, &K::on_active>},
    {"hooks", "on_draining", "", Kind::kText, "\"\"", "",
     "a command run when a step-down begins; a planned release waits for its end, up to "
     "step_down_grace",
     Of<&C::hooks, &K::on_draining>},
    {"hooks", "on_standby", "", Kind::kText, "\"\"", "",
     "a command run after the gates have shut; empty: none", Of<&C::hooks, &K::on_standby>},
    {"hooks", "timeout", "", Kind::kDuration, "\"30s\"", kTimeout,
     "a hook that runs longer is killed with its process group", Of<&C::hooks, &K::timeout>},

    {"audit", "file", "", Kind::kText, "\"\"", "",
     "where changes of holder are written, a JSON line each: a path or stdout; empty: in memory "
     "only",
     Of<&C::audit, &D::file>},
    {"audit", "keep", "", Kind::kInteger, "256", "1..65536",
     "the newest entries that GET /v1/audit shows", Of<&C::audit, &D::keep>},

    {"log", "format", "", Kind::kWord, "\"logfmt\"", "logfmt|json",
     "one line per change of state on standard error", Of<&C::log, &O::format>},
    {"log", "level", "", Kind::kWord, "\"info\"", "debug|info|warn|error",
     "the least important lines that are written", Of<&C::log, &O::level>},
};

}  // namespace

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kText: return "text";
    case Kind::kWord: return "word";
    case Kind::kInteger: return "integer";
    case Kind::kNumber: return "number";
    case Kind::kBoolean: return "boolean";
    case Kind::kDuration: return "duration";
    case Kind::kDurationOrAuto: return "duration or \"auto\"";
    case Kind::kSize: return "size";
    case Kind::kAddress: return "address";
    case Kind::kTextList: return "list of texts";
    case Kind::kIntegerList: return "list of integers";
  }
  return "?";
}

std::span<const Option> Options() { return kOptions; }
std::span<const std::string_view> Sections() { return kSections; }
bool IsRepeated(std::string_view section) { return section == "lease" || section == "gate"; }

bool AppliesTo(const Option& option, std::string_view type) {
  if (option.applies_to.empty()) return true;
  const std::vector<std::string_view> types = Words(option.applies_to);
  return std::find(types.begin(), types.end(), type) != types.end();
}

std::string TypesOf(const Option& option, std::string_view between) {
  std::string out;
  for (const std::string_view type : Words(option.applies_to)) {
    if (!out.empty()) out += between;
    out.append("\"").append(type).append("\"");
  }
  return out;
}

const Option* FindOption(std::string_view section, std::string_view key, std::string_view type) {
  for (const Option& option : kOptions) {
    if (option.section == section && option.key == key && AppliesTo(option, type)) return &option;
  }
  return nullptr;
}

std::vector<std::string_view> Words(std::string_view range) {
  if (range.empty()) return {};
  return base::Split(range, '|');
}

}  // namespace leasehold::config
