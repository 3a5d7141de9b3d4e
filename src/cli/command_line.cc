#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "cli/exit_code.h"
#include "config/suggest.h"

namespace leasehold::cli {
namespace {

constexpr const char* kDescription =
    "Leasehold runs beside an application and makes it highly available without changing it:\n"
    "it holds a lease on the application's behalf and lets traffic through only while it does.\n";

constexpr const char* kFooter =
    "Start here:\n"
    "  leasehold check -c sidecar.conf        what will happen, and what is risky\n"
    "  leasehold run -c sidecar.conf          the sidecar itself\n"
    "  leasehold exec -- ./worker             a command that runs only while the lease is held\n"
    "  leasehold status                       who holds what, at a glance\n"
    "  leasehold step-down                    move a lease to another instance, losing nothing\n"
    "  leasehold events                       what happens, as it happens\n"
    "\n"
    "`leasehold COMMAND --help` explains each command with examples;\n"
    "`leasehold check --reference` explains each option of sidecar.conf.\n"
    "\n"
    "Exit codes:\n"
    "  0  done\n"
    "  1  it was tried and went wrong; standard error says why\n"
    "  2  the command line or the configuration is wrong; nothing was tried\n"
    "  3  failed precondition: another process or token than expected, or a step-down under way\n"
    "  4  the sidecar could not be reached or did not answer\n"
    "  5  it did not happen in time, or the outcome is unknown\n"
    "  6  the asked process does not hold the lease\n";

constexpr const char* kRunFooter =
    "SIGTERM steps down, releases and ends with 0; a second one, or SIGINT twice, ends at once.\n"
    "Its log is on standard error; log.format = \"json\" makes each line an object.\n"
    "Example:\n"
    "  leasehold run -c /etc/leasehold/sidecar.conf\n";

constexpr const char* kExecFooter =
    "All that `run` does, and a command that runs only while the lease is held: started when it "
    "is\n"
    "acquired, after the gates; told to end (TERM to its process group) when all else has "
    "finished\n"
    "in a step-down, and killed exec.stop_timeout later; killed at once when the lease is lost. A\n"
    "watchdog, a small process of its own, has all of it dead before the lease can be another's,\n"
    "also when this process is stopped, killed or hangs. It has FENCING_TOKEN, LEASE_NAME,\n"
    "LEASE_STATE, LEASE_NODE_ID, LEASE_PROCESS_ID, LEASE_SOCKET and LEASE_ADMIN in its "
    "environment;\n"
    "standard input, output and error are ours.\n"
    "\n"
    "When it ends of its own, exec.restart says what follows: \"never\" releases the lease and "
    "ends\n"
    "with its exit code, \"on_failure\" and \"always\" start it again while the lease is held.\n"
    "Signals are as for `run`; they end it too.\n"
    "\n"
    "Exit codes:\n"
    "  the command's own, or 128 + the signal that ended it\n"
    "  0    ended by SIGTERM or SIGINT, and released\n"
    "  2    the command line or the configuration is wrong, or cannot work here; nothing was run\n"
    "  125  leasehold itself failed (its watchdog died, say), or was stopped at once\n"
    "  126  the command is no executable file\n"
    "  127  there is no such command\n"
    "Examples:\n"
    "  leasehold exec -c sidecar.conf -- ./worker --queue orders\n"
    "  leasehold exec -- sh -c 'echo \"$FENCING_TOKEN\"; exec ./nightly'\n";

constexpr const char* kCheckFooter =
    "Prints every derived timing and warns of risky combinations. All errors come at once, each\n"
    "with line, key, value and what would be right; then the exit code is 2.\n"
    "Examples:\n"
    "  leasehold check -c sidecar.conf\n"
    "  leasehold check --reference | less     every option, its default and a line of why\n";

constexpr const char* kStatusFooter =
    "Examples:\n"
    "  leasehold status\n"
    "  leasehold status --admin http://127.0.0.1:9091 --json | jq '.leases[].state'\n";

constexpr const char* kDescribeFooter =
    "Prints node id, fencing token and process id of the holder and changes nothing. Ends with 3\n"
    "during a step-down and its hold-off (who holds is not settled), with 6 when nobody holds.\n"
    "Example:\n"
    "  leasehold describe orders\n";

constexpr const char* kStepDownFooter =
    "The holder stops admitting, finishes what is in flight, releases, and another instance takes\n"
    "over; if none does within the hold-off, it takes the lease back.\n"
    "\n"
    "Every step-down carries a precondition, the node id and token of the process that is meant:\n"
    "  neither given      described first; what is described is expected, and printed\n"
    "  node id alone      described first; another node id is refused, nothing steps down\n"
    "  both given         sent as they are\n"
    "  token alone        a usage error\n"
    "\n"
    "When the outcome is unknown (connection lost, time-out), the message carries the values to\n"
    "retry with. Retry only with those: they cannot step down a successor.\n"
    "Examples:\n"
    "  leasehold step-down\n"
    "  leasehold step-down orders --yes --timeout 3m\n"
    "  leasehold step-down orders --yes --expected-node-id node-a --expected-token 7\n"
    "  leasehold step-down --yes --wait --no-take-back     before this pod goes away\n";

constexpr const char* kWaitFooter =
    "Asks again until the lease is in that state in this sidecar; a sidecar that does not answer\n"
    "yet is waited for too. Ends with 5 when it did not happen in time.\n"
    "Example:\n"
    "  leasehold wait --for active --timeout 30s orders && ./work\n";

constexpr const char* kDrainedFooter =
    "Says over the signal socket that a listener has finished its work, so that the step-down "
    "need\n"
    "not wait for the end of the grace. A step-down waits for who registered on the socket and "
    "for\n"
    "nobody else; --name speaks for the clients of your user id that registered under that name:\n"
    "  {\"op\":\"register\",\"name\":\"worker\"}\n"
    "Without --name it counts for nobody, and shows for how many is still waited. Without "
    "--token:\n"
    "the token now draining. Ends with 1 when nobody is registered under the name, with 3 when\n"
    "nothing drains, with 6 when the lease is not held any more.\n"
    "Example:\n"
    "  leasehold drained orders --name worker --socket /run/leasehold/leasehold.sock\n";

constexpr const char* kEventsFooter =
    "Begins with the state of every lease (hello), then prints a line per event: time, event,\n"
    "lease, token, holder, reason, detail. A broken connection or a restarted sidecar is told on\n"
    "standard error and connected to again: nothing is shown twice, and what could not be had\n"
    "again is told as \"missed\". With --json each line is an object; --since takes its event_id.\n"
    "\n"
    "Ends with 0 on SIGINT, on SIGTERM, when nobody reads its output any more and, with\n"
    "--no-follow, when everything kept is printed; with 4 when the sidecar cannot be reached to\n"
    "begin with, with 1 when the API refuses.\n"
    "Examples:\n"
    "  leasehold events\n"
    "  leasehold events --lease orders --event lease. --json\n"
    "  leasehold events --no-follow --event lease.lost --event store.\n";

// CLI11 does not know of what stands behind "--".
class ExecFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    usage.insert(usage.find_last_not_of('\n') + 1, " -- COMMAND [ARGS...]");
    return usage;
  }
};

// The texts CLI11 collects; turned into typed values after it is done.
struct Texts {
  std::string expected_node_id;
  std::string expected_token;
  std::string token;
  std::string timeout;
};

class Parser {
 public:
  Parser() : app_(kDescription, "leasehold") {
    app_.footer(kFooter);
    app_.require_subcommand(1);
    app_.set_help_flag("-h,--help", "What you are reading");
    app_.set_version_flag("--version", "leasehold " LEASEHOLD_VERSION);
    AddRun();
    AddExec();
    AddCheck();
    AddStatusAndDescribe();
    AddStepDown();
    AddWait();
    AddDrained();
    AddEvents();
    Add(Verb::kVersion, "version", "Print the version", "");
  }

  ParsedCommandLine Parse(std::vector<std::string> arguments) {
    ParsedCommandLine parsed;
    if (std::string wrong = UnknownVerb(arguments); !wrong.empty()) {
      return {std::nullopt, kUsage, "", "leasehold: " + wrong + "\n"};
    }
    TakeCommand(arguments);
    if (std::string wrong = CommandBeforeTheDashes(arguments); !wrong.empty()) {
      return {std::nullopt, kUsage, "", "leasehold: " + wrong + "\n"};
    }
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
      std::ostringstream out;
      std::ostringstream err;
      parsed.exit_code = app_.exit(error, out, err) == 0 ? kOk : kUsage;
      parsed.out = out.str();
      parsed.err = parsed.exit_code == kOk ? err.str() : "leasehold: " + err.str();
      return parsed;
    }
    const std::string wrong = Finish();
    if (wrong.empty()) {
      parsed.command = std::move(command_);
    } else {
      parsed.exit_code = kUsage;
      parsed.err = "leasehold: " + wrong + "\n";
    }
    return parsed;
  }

 private:
  CLI::App* Add(Verb verb, const std::string& name, const std::string& what,
                const std::string& footer) {
    CLI::App* sub = app_.add_subcommand(name, what);
    sub->footer(footer);
    // `run` writes nothing but its log, which has an option of its own.
    if (verb != Verb::kRun && verb != Verb::kExec) {
      sub->add_flag("--json", command_.json, "Machine-readable output on standard output");
    }
    sub->callback([this, verb, sub] {
      command_.verb = verb;
      const CLI::Option* config = sub->get_option_no_throw("--config");
      command_.config_given = config != nullptr && config->count() > 0;
    });
    return sub;
  }

  // What stands behind "--" is the command's, flags and all.
  void TakeCommand(std::vector<std::string>& arguments) {
    if (arguments.empty() || arguments[0] != "exec") return;
    const auto mark = std::find(arguments.begin(), arguments.end(), "--");
    if (mark == arguments.end()) return;
    command_.command.assign(mark + 1, arguments.end());
    arguments.erase(mark, arguments.end());
  }

  // CLI11 would take the command's flags for ours. Whatever else is wrong, it says.
  static std::string CommandBeforeTheDashes(const std::vector<std::string>& arguments) {
    if (arguments.empty() || arguments[0] != "exec") return "";
    size_t at = 1;
    while (at < arguments.size() && arguments[at].starts_with("-")) {
      const std::string& flag = arguments[at];
      const bool config = flag == "-c" || flag == "--config";
      if (!config && !flag.starts_with("--config=")) return "";
      at += config ? 2 : 1;
    }
    if (at >= arguments.size()) return "";
    std::string right = "leasehold";
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (i == at) right += " --";
      right += " " + AsTyped(arguments[i]);
    }
    return "exec: the command stands behind \"--\", like: " + right;
  }

  // A word as a shell takes it.
  static std::string AsTyped(const std::string& word) {
    constexpr const char* kBare =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";
    std::string shown = base::Printable(word);
    if (!word.empty() && word.find_first_not_of(kBare) == std::string::npos) return shown;
    for (size_t at = 0; (at = shown.find('\'', at)) != std::string::npos; at += 4) {
      shown.replace(at, 1, "'\\''");
    }
    return "'" + shown + "'";
  }

  // CLI11 would only say that a subcommand is required.
  std::string UnknownVerb(const std::vector<std::string>& arguments) const {
    if (arguments.empty() || arguments[0].starts_with("-")) return "";
    std::vector<std::string> names;
    for (const CLI::App* sub : app_.get_subcommands({})) names.push_back(sub->get_name());
    if (std::find(names.begin(), names.end(), arguments[0]) != names.end()) return "";
    const std::string_view near =
        config::Nearest(arguments[0], std::vector<std::string_view>(names.begin(), names.end()));
    return "there is no command \"" + base::Printable(arguments[0]) + "\"; " +
           (near.empty() ? "`leasehold --help` lists them"
                         : "did you mean \"" + std::string(near) + "\"?");
  }

  void AddConfig(CLI::App* sub, const std::string& what) {
    sub->add_option("-c,--config", command_.config, what)->type_name("FILE");
  }
  void AddApi(CLI::App* sub) {
    AddConfig(sub, "Take address and token file of the API from this configuration");
    sub->add_option("--admin", command_.admin,
                    "The sidecar's API; also unix:/path (default http://127.0.0.1:9090)")
        ->type_name("URL");
    sub->add_option("--token-file", command_.token_file, "File with the API's token")
        ->type_name("FILE");
  }
  void AddLease(CLI::App* sub) {
    sub->add_option("LEASE", command_.lease, "Name of the lease; may be left out if there is one")
        ->type_name("");
  }
  void AddTimeout(CLI::App* sub, const std::string& what) {
    sub->add_option("--timeout", texts_.timeout, what + " (default 2m)")->type_name("DURATION");
  }

  void AddRun() {
    CLI::App* sub = Add(Verb::kRun, "run", "Run the sidecar", kRunFooter);
    AddConfig(sub, "The configuration (default sidecar.conf)");
  }
  void AddExec() {
    CLI::App* sub =
        Add(Verb::kExec, "exec",
            "Run a command while the lease is held: exec [OPTIONS] -- COMMAND ...", kExecFooter);
    sub->formatter(std::make_shared<ExecFormatter>());
    AddConfig(sub, "The configuration (default sidecar.conf)");
  }
  void AddCheck() {
    CLI::App* sub =
        Add(Verb::kCheck, "check", "Validate a configuration, print its timings", kCheckFooter);
    AddConfig(sub, "The configuration (default sidecar.conf)");
    sub->add_flag("--reference", command_.reference, "Explain every option instead");
  }
  void AddStatusAndDescribe() {
    AddApi(Add(Verb::kStatus, "status", "Who holds what, and how the gates stand", kStatusFooter));
    CLI::App* sub = Add(Verb::kDescribe, "describe", "Node id, token and process of the holder",
                        kDescribeFooter);
    AddLease(sub);
    AddApi(sub);
  }
  void AddStepDown() {
    CLI::App* sub =
        Add(Verb::kStepDown, "step-down", "Give a lease away, losing nothing", kStepDownFooter);
    AddLease(sub);
    AddApi(sub);
    sub->add_option("--expected-node-id", texts_.expected_node_id,
                    "Only if this node holds the lease")
        ->type_name("ID");
    sub->add_option("--expected-token", texts_.expected_token,
                    "Only if it is held under this token; needs --expected-node-id")
        ->type_name("TOKEN");
    CLI::Option* wait = sub->add_flag("--wait", wait_, "Wait for the outcome: the default");
    sub->add_flag("--no-wait", no_wait_, "Return once the step-down is under way")->excludes(wait);
    AddTimeout(sub, "How long to wait; longer than grace and hold-off");
    sub->add_flag("--no-take-back", no_take_back_,
                  "Do not take the lease back if nobody else takes it");
    sub->add_flag("-y,--yes", command_.yes, "Do not ask; needed where there is no terminal");
  }
  void AddWait() {
    CLI::App* sub = Add(Verb::kWait, "wait", "Wait for a lease to reach a state", kWaitFooter);
    AddLease(sub);
    AddApi(sub);
    sub->add_option("--for", command_.wait_for, "active, standby or draining")
        ->required()
        ->type_name("STATE")
        ->check(CLI::IsMember({"active", "standby", "draining"}).description(""));
    AddTimeout(sub, "How long to wait");
  }
  void AddDrained() {
    CLI::App* sub =
        Add(Verb::kDrained, "drained", "Say that a listener has finished its work", kDrainedFooter);
    AddLease(sub);
    AddConfig(sub, "Take the socket from this configuration");
    sub->add_option("--socket", command_.socket, "The sidecar's signal socket")->type_name("PATH");
    sub->add_option("--name", command_.client_name,
                    "For the clients that registered under this name")
        ->type_name("NAME");
    sub->add_option("--token", texts_.token, "The token that lease.draining told")
        ->type_name("TOKEN");
    AddTimeout(sub, "How long to wait for the answer");
  }

  void AddEvents() {
    CLI::App* sub = Add(Verb::kEvents, "events", "Show what happens, as it happens", kEventsFooter);
    AddApi(sub);
    sub->add_option("--lease", command_.lease, "Only what concerns this lease")->type_name("LEASE");
    sub->add_option("--event", command_.events,
                    "Only this event, or all that begin so (\"lease.\"); may be repeated")
        ->type_name("EVENT")
        ->allow_extra_args(false);
    sub->add_option("--since", command_.since,
                    "After the event with this id, or \"start\": all that is kept, first")
        ->type_name("ID");
    sub->add_flag("--no-follow", no_follow_, "Print what is kept, then end");
  }

  // Typed values out of texts, and what CLI11 cannot know. A sentence, or empty.
  std::string Finish() {
    // An empty value is an unset variable of a script: it must not weaken the precondition.
    for (const CLI::App* sub : app_.get_subcommands()) {
      for (const CLI::Option* option : sub->get_options()) {
        if (option->count() > 0 && option->get_items_expected_max() > 0 &&
            std::ranges::any_of(option->results(), &std::string::empty)) {
          return option->get_name() + " is given, but empty; give a value or leave it out";
        }
      }
    }
    if (command_.verb == Verb::kExec && command_.command.empty()) {
      return "exec needs a command behind \"--\", like: leasehold exec -- ./worker";
    }
    command_.wait_for_outcome = !no_wait_;
    command_.take_back = !no_take_back_;
    command_.follow = !no_follow_;
    if (!texts_.expected_node_id.empty()) command_.expected_node_id = texts_.expected_node_id;
    if (!texts_.timeout.empty()) {
      const base::Result<base::Duration> timeout = base::ParseDuration(texts_.timeout);
      if (!timeout) return "--timeout: " + timeout.error().message;
      if (*timeout == base::Duration::Zero()) return "--timeout 0: must be longer than nothing";
      command_.timeout = *timeout;
    }
    if (std::string wrong =
            Token("--expected-token", texts_.expected_token, command_.expected_token);
        !wrong.empty()) {
      return wrong;
    }
    if (command_.expected_token && !command_.expected_node_id) {
      return "--expected-token needs --expected-node-id beside it: a token alone does not say "
             "which "
             "process is meant";
    }
    return Token("--token", texts_.token, command_.token);
  }

  static std::string Token(const std::string& flag, const std::string& text,
                           std::optional<uint64_t>& token) {
    if (text.empty()) return "";
    const base::Result<uint64_t> number = base::ParseUint64(text);
    if (!number) return flag + ": " + number.error().message;
    if (*number == 0) return flag + " 0: tokens begin at 1";
    token = *number;
    return "";
  }

  CLI::App app_;
  CommandLine command_;
  Texts texts_;
  bool wait_ = false;  // the default, said aloud
  bool no_wait_ = false;
  bool no_take_back_ = false;
  bool no_follow_ = false;
};

}  // namespace

ParsedCommandLine ParseCommandLine(const std::vector<std::string>& arguments) {
  return Parser().Parse(arguments);
}

}  // namespace leasehold::cli
