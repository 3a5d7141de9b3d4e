// `sidecar.conf` through the real loader: the input as its text, and the input as choices from the
// option table (config_choices.h). Asserted of any text: no exception, no crash; each error
// and warning has a sentence, a place and nothing unprintable; ${VAR} grows without bound in no
// value; and what is accepted is what the rooms accept: their own validations pass, the derived
// times are in the order that the protocol needs, every gate has its lease and every address leads
// somewhere, the JSON of it is JSON, and no secret is in what is shown.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "admin/access.h"
#include "base/text.h"
#include "config/config.h"
#include "config/expand.h"
#include "fuzz/config_choices.h"
#include "fuzz/fuzz_target.h"
#include "health/check_spec.h"
#include "proto/json.h"
#include "store/redis_store.h"

namespace leasehold::fuzz {
namespace {

using base::Duration;
using config::Config;
using config::LoadResult;
using config::Problem;

constexpr std::string_view kSecret = "sEcReT-0123456789";

// The environment: what a pod has, and what is odd.
const char* Variable(const char* name) {
  static const std::string kLarge(5000, 'x');
  const std::string_view asked(name);
  if (asked == "HOME") return "/var/lib/app";
  if (asked == "POD_NAME") return "orders-0";
  if (asked == "POD_IP") return "10.0.0.7";
  if (asked == "EMPTY") return "";
  if (asked == "NESTED") return "${HOME}$${x}";
  if (asked == "LINES") return "a\nb = \"\"";
  if (asked == "LARGE") return kLarge.c_str();
  if (asked == "SECRET") return kSecret.data();
  return nullptr;
}

void CheckPrintable(std::string_view text) {
  for (const char c : text) CHECK(c >= ' ' && c < 0x7f, "a message shows raw bytes");
}

void CheckProblem(const Problem& problem, int lines) {
  CHECK(problem.file == "fuzz.conf", "an error of which file?");
  CHECK(!problem.message.empty(), "an error without a sentence");
  CHECK(problem.line >= 0 && problem.line <= lines, "an error at no line");
  CHECK(!problem.key.empty() || problem.message.starts_with("not TOML: "), "an error of what?");
  CheckPrintable(problem.ToString());
}

void CheckTiming(const lease::Options& options) {
  CHECK(lease::Validate(options).empty(), "a lease is accepted that the engine refuses");
  (void)lease::Warnings(options);
  const lease::Timing t = lease::Derive(options);
  CHECK(t.margin >= Duration::Millis(20), "a margin below 20ms");
  CHECK(t.margin >= t.ttl.Scaled(2 * t.drift), "a margin below what two clocks may differ");
  CHECK(t.renew_interval > Duration::Zero() && t.call_timeout > Duration::Zero(), "no time at all");
  // A round holds its wait, the jitter on it and one call; max_renew_fails of them three quarters
  // of the TTL.
  const Duration call = Min(t.call_timeout, Duration::Seconds(5));
  CHECK(t.renew_interval + t.renew_interval / 8 + call <= t.budget + Duration::Micros(1),
        "a renewal round is longer than its budget");
  CHECK(t.budget * t.max_renew_fails <= t.ttl * 3 / 4, "the rounds are longer than their share");
  CHECK(t.forced_drain_after >= t.ttl * 7 / 8, "a forced drain too early");
  CHECK(t.forced_drain_after <= t.ttl - t.margin, "a forced drain after the permit's end");
  CHECK(t.poll_interval > Duration::Zero(), "a standby that never polls, or always");
  CHECK(t.hold_off > t.poll_interval + t.call_timeout, "a hold-off that no standby can use");
  CHECK(t.Window(t.ttl) >= t.ttl, "a window shorter than the TTL");
}

void CheckSameAddress(const base::Address& address) {
  if (address.empty()) return;
  const base::Result<base::Address> again = base::ParseAddress(address.ToString());
  CHECK(again.ok() && *again == address, "an address leads elsewhere when it is read again");
}

void CheckGate(const gate::Options& gate, const Config& config) {
  const auto lease = std::find_if(config.leases.begin(), config.leases.end(),
                                  [&](const auto& each) { return each.name == gate.lease; });
  CHECK(lease != config.leases.end(), "a gate of no lease");
  CHECK(!gate.name.empty() && !gate.listen.empty(), "a gate of nothing");
  // An sqs gate has no upstream of its own: it is where the service's endpoint is.
  if (gate.type != gate::Type::kSqs) {
    CHECK(!gate.upstream.empty(), "a gate to nowhere");
    CHECK(gate.upstream.kind == base::Address::Kind::kUnix || gate.upstream.port != 0, "port 0");
  }
  CHECK(gate.max_connections > 0 && gate.head_bytes_max > 0 && gate.buffer_bytes > 0, "no room");
  CHECK(!gate.forwards() || (!gate.peer_listen.empty() && !gate.outbound), "nowhere to forward");
  const bool tcp = gate.type == gate::Type::kTcp;
  using Policy = gate::StandbyPolicy;
  CHECK(tcp ? gate.standby != Policy::kReject
            : gate.standby != Policy::kRefuse && gate.standby != Policy::kClose,
        "a policy of the other type");
  const lease::Timing t = lease::Derive(*lease);
  CHECK(gate.hold_timeout > Duration::Zero(), "nothing is held for no time");
  if (gate.standby == Policy::kHold || gate.forwards()) {
    CHECK(gate.hold_timeout > t.grace + t.hold_off + t.poll_interval, "held for less than a move");
  }
  for (const base::Address* each :
       {&gate.listen, &gate.upstream, &gate.peer_listen, &gate.advertise}) {
    CheckSameAddress(*each);
  }
}

void CheckRooms(const Config& config) {
  CHECK(!config.leases.empty(), "no lease");
  std::set<std::string> names;
  for (const lease::Options& lease : config.leases) {
    CHECK(names.insert(lease.name).second, "two leases of one name");
    CheckTiming(lease);
  }
  names.clear();
  for (const gate::Options& gate : config.gates) {
    CHECK(names.insert(gate.name).second, "two gates of one name");
    CheckGate(gate, config);
  }
  if (config.store.type == "redis") {
    CHECK(store::ValidateRedisOptions(config.store.redis).ok(), "a store that the adapter refuses");
  }
  const auto check = health::ParseCheckSpec(config.app.check);
  CHECK(check.ok(), "a check that cannot be made");
  CHECK(config.app.check.empty() || config.app.unready_after > config.app.interval,
        "unready at once");
  if (!config.admin.listen.empty()) {
    const auto address = base::ParseAddress(config.admin.listen);
    CHECK(address.ok(), "an API that listens nowhere");
    const std::string_view token = config.admin.token_file.empty() ? "" : "word";
    CHECK(admin::AccessRules::Make(config.admin, *address, token).ok(), "an API that is refused");
  }
  for (const std::string& hook :
       {config.hooks.on_active, config.hooks.on_draining, config.hooks.on_standby}) {
    CHECK(hook.empty() || base::SplitCommand(hook).ok(), "a hook that is no command");
  }
  CHECK(!config.node.id.empty() && config.node.id.size() <= 253, "a node without an id");
}

void CheckShown(std::string_view text, const LoadResult& result) {
  const std::string json = config::ToJson(result.config);
  CHECK(proto::Json::Parse(json).ok(), "the configuration in force is not JSON");
  CHECK(!config::DescribeTimings(result.config).empty(), "no timings");
  // The secret was put where secrets belong, and nowhere else.
  const std::string& password = result.config.store.redis.password;
  const size_t named = text.find("SECRET");
  if (password != kSecret || text.find("SECRET", named + 1) != std::string_view::npos) return;
  CHECK(json.find(kSecret) == std::string::npos, "the configuration in force shows a secret");
  for (const Problem& warning : result.warnings) {
    CHECK(warning.ToString().find(kSecret) == std::string::npos, "a warning shows a secret");
  }
}

void CheckExpand(std::string_view text) {
  const base::Result<std::string> expanded = config::Expand(text, Variable);
  if (!expanded) return CheckPrintable(expanded.error().message);
  CHECK(expanded->size() <= size_t{64} * 1024 + text.size(), "variables grow without bound");
  // Once: what a variable holds is not looked into.
  CHECK(text.find("${") != std::string_view::npos || *expanded == text,
        "changed without a variable");
}

// Files that the loader looks at: none that blocks or never ends.
bool NamesADevice(std::string_view text) {
  return text.find("/dev") != std::string_view::npos ||
         text.find("/proc") != std::string_view::npos ||
         text.find("/sys") != std::string_view::npos;
}

void CheckLoad(std::string_view text) {
  const LoadResult result = config::LoadText(text, "fuzz.conf", Variable);
  const int lines = 1 + static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  for (const Problem& error : result.errors) CheckProblem(error, lines);
  for (const Problem& warning : result.warnings) CheckProblem(warning, lines);
  if (!result.errors.empty()) return;
  CheckRooms(result.config);
  CheckShown(text, result);
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  CheckExpand(input);
  if (!NamesADevice(input)) CheckLoad(input);
  CheckLoad(ConfigChoices(input).Text());
  return 0;
}
