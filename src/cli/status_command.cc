// status and describe: who holds what, readable at a glance.
#include <ostream>

#include "base/text.h"
#include "cli/api.h"
#include "cli/commands.h"

namespace leasehold::cli {
namespace {

using proto::Json;

std::string Text(const Json& object, std::string_view key) {
  return Shown(object.String(key).value_or(""));
}

std::string TokenText(const Json& object, std::string_view key) {
  const std::optional<uint64_t> token = object.Token(key);
  return token ? std::to_string(*token) : "-";
}

// "8.2s": a tenth is what a glance can use.
std::string Span(const Json& object, std::string_view key) {
  const std::optional<int64_t> ms = object.Int(key);
  if (!ms) return "-";
  return std::to_string(*ms / 1000) + "." + std::to_string(*ms % 1000 / 100) + "s";
}

std::string Uptime(int64_t ms) {
  const int64_t minutes = ms / 60000;
  if (minutes == 0) return std::to_string(ms / 1000) + "s";
  if (minutes < 120) return std::to_string(minutes) + "m";
  return std::to_string(minutes / 60) + "h";
}

void PrintNode(const Json& node, Console& console) {
  console.out << "node   " << Text(node, "node_id") << "  process " << Text(node, "process_id")
              << "  version " << Text(node, "version") << "  up "
              << Uptime(node.Int("uptime_ms").value_or(0))
              << (node.Bool("shutting_down").value_or(false) ? "  shutting down" : "") << "\n";
  const bool connected = node.Bool("store_connected").value_or(false);
  console.out << "store  " << Text(node, "store") << "  "
              << (connected ? Paint(console, Color::kGood, "connected")
                            : Paint(console, Color::kBad, "not connected"))
              << "\n";
  console.out << "app    ";
  if (!node.Bool("app_checked").value_or(false)) {
    console.out << "not checked\n";
  } else if (node.Bool("app_ready").value_or(false)) {
    console.out << Paint(console, Color::kGood, "ready") << "\n";
  } else {
    console.out << Paint(console, Color::kBad, "unready") << "  " << Text(node, "app_error")
                << "\n";
  }
}

Table::Cell State(const Json& lease) {
  const std::string state = Text(lease, "state");
  if (lease.Bool("at_risk").value_or(false)) return {state + " (at risk)", Color::kBad};
  if (state == "active") return {state, Color::kGood};
  return {state, state == "standby" ? Color::kNone : Color::kWarning};
}

std::string Holder(const Json& lease, const std::string& own_process) {
  const std::optional<Json> holder = lease.Find("holder");
  if (!holder || !holder->is_object()) return "nobody";
  const bool own = holder->String("process_id") == own_process;
  return Text(*holder, "node_id") + (own ? " (this one)" : "");
}

std::string Note(const Json& lease) {
  std::string note;
  const auto add = [&note](const std::string& text) {
    if (!text.empty()) note += (note.empty() ? "" : "; ") + text;
  };
  const bool draining = lease.Int("drain_ends_in_ms").has_value();
  if (draining) add("drain ends in " + Span(lease, "drain_ends_in_ms"));
  if (lease.Find("holding") && !lease.Bool("holding").value_or(false)) {
    add(Text(lease, "not_competing"));
  }
  if (const std::string reason = Text(lease, "last_reason"); !reason.empty()) {
    add((draining ? "reason: " : "last ended: ") + reason);
  }
  if (!lease.Bool("store_ok").value_or(true)) add(Text(lease, "last_error"));
  return note;
}

void PrintLeases(const Json& status, const std::string& own_process, Console& console) {
  Table leases({"LEASE", "STATE", "TOKEN", "HOLDER", "EXPIRES IN", "NOTE"});
  Table gates({"GATE", "TYPE", "STATE", "LISTEN", "UPSTREAM", "CONNS", "IN FLIGHT", "HELD",
               "FORWARDED TO"});
  size_t gate_count = 0;
  for (const Json& lease : status.Find("leases").value_or(Json()).Elements()) {
    leases.Add({Text(lease, "lease"), State(lease), TokenText(lease, "token"),
                Holder(lease, own_process), Span(lease, "expires_in_ms"), Note(lease)});
    for (const Json& gate : lease.Find("gates").value_or(Json()).Elements()) {
      ++gate_count;
      const std::string state = Text(gate, "state");
      const std::string listen = Text(gate, "listen");
      const std::string peer = Text(gate, "peer");
      const std::string forwarding = std::to_string(gate.Uint("forwarding").value_or(0));
      gates.Add({Text(gate, "name"), Text(gate, "type"),
                 Table::Cell(state, state == "open" ? Color::kGood : Color::kNone),
                 listen.empty() ? "-" : listen, Text(gate, "upstream"),
                 std::to_string(gate.Uint("connections").value_or(0)),
                 std::to_string(gate.Uint("in_flight").value_or(0)),
                 std::to_string(gate.Uint("held").value_or(0)),
                 peer.empty() ? "-" : peer + " (" + forwarding + ")"});
    }
  }
  console.out << "\n";
  leases.Print(console);
  if (gate_count == 0) return;
  console.out << "\n";
  gates.Print(console);
}

}  // namespace

int StatusCommand(const CommandLine& command, loop::Loop& loop, Console& console) {
  base::Result<ApiTarget> target = FindApi(command);
  if (!target) return FailWith(console, command.json, target.error());
  Api api(loop, *target);
  const base::Result<ApiAnswer> answer = api.Get("/v1/status");
  if (!answer) return FailWith(console, command.json, answer.error());
  if (!answer->ok()) return FailWith(console, command.json, *answer);
  if (command.json) {
    PrintJson(console, *answer);
    return kOk;
  }
  const Json node = answer->body.Find("node").value_or(Json());
  PrintNode(node, console);
  PrintLeases(answer->body, node.String("process_id").value_or(""), console);
  for (const Json& trouble : node.Find("troubles").value_or(Json()).Elements()) {
    console.out << "\n"
                << Paint(console, Color::kBad, "trouble") << "  "
                << Shown(trouble.AsString().value_or("")) << "\n";
  }
  return kOk;
}

int DescribeCommand(const CommandLine& command, loop::Loop& loop, Console& console) {
  base::Result<ApiTarget> target = FindApi(command);
  if (!target) return FailWith(console, command.json, target.error());
  Api api(loop, *target);
  int exit_code = kOk;
  const std::string lease = ResolveLease(api, command, console, exit_code);
  if (lease.empty()) return exit_code;
  const base::Result<ApiAnswer> answer = api.Get(LeasePath(lease) + "/describe");
  if (!answer) return FailWith(console, command.json, answer.error());
  if (!answer->ok()) return FailWith(console, command.json, *answer);
  if (command.json) {
    PrintJson(console, *answer);
    return kOk;
  }
  const bool own = answer->body.Bool("this_process").value_or(true);
  console.out << "lease       " << Shown(lease) << "\n"
              << "node id     " << Text(answer->body, "node_id") << "\n"
              << "token       " << TokenText(answer->body, "token") << "\n"
              << "process id  " << Text(answer->body, "process_id")
              << (own ? "" : "  (another process; this one is not the holder)") << "\n";
  return kOk;
}

}  // namespace leasehold::cli
