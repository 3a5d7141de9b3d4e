// step-down: the rules of the precondition (DESIGN 2.5). Whatever goes wrong after the request was
// sent leaves the outcome unknown, and the message then carries the values to retry with.
#include <ostream>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/api.h"
#include "cli/commands.h"

namespace leasehold::cli {
namespace {

using base::ErrorCode;

struct Expected {
  std::string node_id;
  uint64_t token = 0;
};

class StepDown {
 public:
  StepDown(const CommandLine& command, Api& api, Console& console)
      : command_(command), api_(api), console_(console) {}

  int Go() {
    int exit_code = kOk;
    lease_ = ResolveLease(api_, command_, console_, exit_code);
    if (lease_.empty()) return exit_code;
    if (command_.expected_token) {
      expected_ = {*command_.expected_node_id, *command_.expected_token};
    } else if (exit_code = Describe(); exit_code != kOk) {
      return exit_code;
    }
    if (exit_code = Confirm(); exit_code != kOk) return exit_code;
    if (!command_.json) {
      console_.out << "expecting node id " << Shown(expected_.node_id) << ", token "
                   << expected_.token << "\n";
      console_.out.flush();
    }
    return Send();
  }

 private:
  // Fills in what is expected from the process that holds now; it must be the one that is asked.
  int Describe() {
    const base::Result<ApiAnswer> answer = api_.Get(LeasePath(lease_) + "/describe");
    if (!answer) return FailWith(console_, command_.json, answer.error());
    if (!answer->ok()) return FailWith(console_, command_.json, *answer);
    const std::string node_id = answer->body.String("node_id").value_or("");
    const uint64_t token = answer->body.Token("token").value_or(0);
    if (node_id.empty() || token == 0) {
      return Fail(console_, command_.json, kFailed, "bad_answer",
                  "describe answered without node id and token; nothing was changed");
    }
    if (command_.expected_node_id && *command_.expected_node_id != node_id) {
      return Fail(console_, command_.json, kFailedPrecondition, "failed_precondition",
                  "node id " + Shown(node_id) + " holds the lease, not " +
                      Shown(*command_.expected_node_id) + "; nothing was changed");
    }
    if (!answer->body.Bool("this_process").value_or(true)) {
      return Fail(console_, command_.json, kNotHolder, "not_holder",
                  "the process at " + api_.name() + " does not hold lease " + Shown(lease_) +
                      "; node id " + Shown(node_id) + " does, so ask there; nothing was changed");
    }
    expected_ = {node_id, token};
    return kOk;
  }

  int Confirm() {
    if (command_.yes) return kOk;
    if (!console_.confirm) {
      return Fail(console_, command_.json, kUsage, "usage",
                  "there is no terminal to ask on; give --yes to step down lease " + Shown(lease_) +
                      " of node id " + Shown(expected_.node_id) + ", token " +
                      std::to_string(expected_.token));
    }
    const bool yes = console_.confirm("Step down lease " + Shown(lease_) + " of node id " +
                                      Shown(expected_.node_id) + ", token " +
                                      std::to_string(expected_.token) + "? [y/N] ");
    if (yes) return kOk;
    return Fail(console_, command_.json, kFailed, "declined", "not stepped down, as you said");
  }

  int Send() {
    std::string body;
    base::JsonWriter json(body);
    json.BeginObject().Member("expected_node_id", expected_.node_id);
    json.Key("expected_token").Token(expected_.token);
    json.Member("take_back", command_.take_back).Member("wait", command_.wait_for_outcome);
    json.EndObject();
    const base::Result<ApiAnswer> answer =
        api_.Post(LeasePath(lease_) + "/step-down", body, command_.timeout);
    if (!answer) {
      const ErrorCode what = answer.error().code;
      const bool unreached = what == ErrorCode::kUnavailable || what == ErrorCode::kNotFound ||
                             what == ErrorCode::kRefused;
      return Unknown(unreached ? kNotReachable : kTimedOut, Shown(answer.error().message));
    }
    if (answer->status >= 500 && answer->problem() != "limit") {
      return Unknown(kTimedOut, answer->detail());
    }
    if (!answer->ok()) return FailWith(console_, command_.json, *answer);
    const std::string outcome = answer->body.String("outcome").value_or("unknown");
    if (outcome == "unknown" && Value(answer->body, "active_node_id").empty() &&
        answer->body.Token("released_token").value_or(0) == expected_.token) {
      return Released(*answer);
    }
    if (outcome == "unknown") return Unknown(kTimedOut, answer->detail(), &*answer);
    if (command_.json) {
      PrintJson(console_, *answer);
    } else {
      Print(*answer, outcome);
    }
    return kOk;
  }

  void Print(const ApiAnswer& answer, const std::string& outcome) {
    if (outcome == "pending") {
      console_.out << "under way; this waits until another instance holds it:\n"
                   << "  leasehold wait --for standby " << Shown(lease_) << SameSidecar() << "\n";
      return;
    }
    const auto line = [&](const char* name, std::string_view key) {
      const std::string value = Value(answer.body, key);
      if (!value.empty()) console_.out << name << value << "\n";
    };
    console_.out << "outcome            " << Shown(outcome) << "\n";
    line("released token     ", "released_token");
    line("hold-off           ", "hold_off");
    line("active node id     ", "active_node_id");
    line("active token       ", "active_token");
    line("active process id  ", "active_process_id");
    line("detail             ", "detail");
  }

  static std::string Value(const proto::Json& body, std::string_view key) {
    const std::optional<std::string> text = body.String(key);
    return text ? Shown(*text) : "";
  }

  // What else the retry must say to ask the same of the same sidecar.
  std::string SameWay() const {
    return (command_.take_back ? "" : " --no-take-back") + SameSidecar();
  }

  std::string SameSidecar() const {
    std::string flags;
    if (!command_.admin.empty()) flags += " --admin " + Shown(command_.admin);
    if (!command_.token_file.empty()) flags += " --token-file " + Shown(command_.token_file);
    if (command_.config_given) flags += " -c " + Shown(command_.config);
    return flags;
  }

  // Given back for certain; only a new holder was not seen. There is nothing to try again.
  int Released(const ApiAnswer& answer) {
    const std::string why = answer.detail();
    console_.err << "leasehold: lease " << Shown(lease_) << " was released (token "
                 << expected_.token << "), and no instance was seen to take it: " << why << "\n";
    if (why.find("take_back=false") != std::string::npos) {  // the engine's word for who sits out
      console_.err << "This instance does not compete until another one has held the lease. Start "
                      "another instance,\nor restart this one to let it compete.\n";
    } else {
      console_.err << "Who holds it now:\n  leasehold status" << SameSidecar() << "\n";
    }
    if (command_.json) PrintJson(console_, answer);
    return kTimedOut;
  }

  // The outcome is not known. `answer`: the sidecar itself said so.
  int Unknown(ExitCode code, const std::string& why, const ApiAnswer* answer = nullptr) {
    const std::string token = std::to_string(expected_.token);
    console_.err << "leasehold: the outcome is unknown: " << why << "\n"
                 << "It may have been stepped down. To try again, use exactly these values, which "
                    "cannot step down\na successor:\n  leasehold step-down "
                 << Shown(lease_) << " --yes --expected-node-id " << Shown(expected_.node_id)
                 << " --expected-token " << token << SameWay() << "\n";
    if (!command_.json) return code;
    if (answer != nullptr) {
      PrintJson(console_, *answer);
      return code;
    }
    std::string text;
    base::JsonWriter json(text);
    json.BeginObject().Member("ok", false).Member("error", "unknown_outcome");
    json.Member("lease", lease_).Member("outcome", "unknown").Member("detail", why);
    json.Member("expected_node_id", expected_.node_id).Member("expected_token", token).EndObject();
    console_.out << text << "\n";
    return code;
  }

  const CommandLine& command_;
  Api& api_;
  Console& console_;
  std::string lease_;
  Expected expected_;
};

}  // namespace

int StepDownCommand(const CommandLine& command, loop::Loop& loop, Console& console) {
  base::Result<ApiTarget> target = FindApi(command);
  if (!target) return FailWith(console, command.json, target.error());
  Api api(loop, *target);
  return StepDown(command, api, console).Go();
}

}  // namespace leasehold::cli
