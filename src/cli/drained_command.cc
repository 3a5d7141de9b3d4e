// drained: one line over the signal socket (DESIGN 5), answered with one line. The socket greets
// with `hello`, which shows the token that is draining; events that come between are passed over.
#include <memory>
#include <optional>
#include <ostream>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "config/config.h"
#include "loop/connect.h"
#include "loop/stream.h"
#include "loop/timer.h"

namespace leasehold::cli {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using proto::Json;

constexpr size_t kLineBytesMax = size_t{1} << 20;  // a hello of 256 leases with their gates fits

Result<std::string> FindSocket(const CommandLine& command) {
  if (!command.socket.empty()) return command.socket;
  if (!command.config_given) {
    return Error{ErrorCode::kInvalid,
                 "name the signal socket with --socket, or the configuration "
                 "that names it with -c"};
  }
  const config::LoadResult loaded = config::LoadFile(command.config);
  if (!loaded.errors.empty()) {
    return Error{ErrorCode::kInvalid, loaded.errors.front().ToString()};
  }
  if (loaded.config.signal.socket.empty()) {
    return Error{ErrorCode::kInvalid, command.config +
                                          ": signal.socket = \"\": this sidecar has "
                                          "no signal socket"};
  }
  return loaded.config.signal.socket;
}

// Lines of a connected socket, one at a time; runs the loop while it waits.
class LineSocket final : private loop::StreamListener {
 public:
  LineSocket(loop::Loop& loop, base::Duration timeout)
      : loop_(loop), deadline_(loop, [this] {
          Over({ErrorCode::kTimeout, "no answer in time"});
        }) {
    deadline_.StartAfter(timeout);
  }

  base::Status Connect(const base::Address& address) {
    connecting_ = loop::Connect(loop_, address, {}, [this](auto stream) {
      if (!stream) return Over(stream.error());
      stream_ = std::move(stream).value();
      stream_->SetListener(this);
      stream_->StartReading();
      loop_.Stop();
    });
    while (!stream_ && !failure_) loop_.Run();
    if (failure_) return *failure_;
    return {};
  }

  void Send(const std::string& line) { stream_->Write(line + "\n"); }

  Result<Json> Next() {
    for (;;) {
      const size_t end = input_.find('\n');
      if (end != std::string::npos) {
        const std::string line = input_.substr(0, end);
        input_.erase(0, end + 1);
        return Json::Parse(line);
      }
      if (failure_) return *failure_;
      loop_.Run();
    }
  }

 private:
  void OnData(std::span<const char> bytes) override {
    input_.append(bytes.data(), bytes.size());
    if (input_.size() > kLineBytesMax) Over({ErrorCode::kLimit, "a line without end"});
    loop_.Stop();
  }
  void OnEnd() override { Over({ErrorCode::kClosed, "the sidecar closed the connection"}); }
  void OnDrained() override {}
  void OnClosed(const Error& error) override { Over(error); }
  void Over(Error error) {
    if (!failure_) failure_ = std::move(error);
    loop_.Stop();
  }

  loop::Loop& loop_;
  loop::Timer deadline_;  // of the whole conversation
  std::unique_ptr<loop::Connecting> connecting_;
  std::unique_ptr<loop::Stream> stream_;
  std::string input_;
  std::optional<Error> failure_;
};

// The draining lease that is meant, out of `hello`. Sets what the user left open.
base::Status Choose(const Json& hello, std::string& lease, std::optional<uint64_t>& token) {
  size_t draining = 0;
  std::string name;
  uint64_t its_token = 0;
  for (const Json& entry : hello.Find("leases").value_or(Json()).Elements()) {
    const std::string entry_name = entry.String("lease").value_or("");
    if ((!lease.empty() && entry_name != lease) || entry.String("state") != "draining") continue;
    ++draining;
    name = entry_name;
    its_token = entry.Token("token").value_or(0);
  }
  if (draining == 1) {
    lease = name;
    if (!token) token = its_token;
    return {};
  }
  if (!lease.empty() && token) return {};  // the sidecar says what is the matter
  return Error{ErrorCode::kConflict,
               draining == 0 ? (lease.empty() ? "no lease" : "lease " + Shown(lease) + " is not") +
                                   std::string(" draining now; there is nothing to say drained to")
                             : "several leases are draining; name one"};
}

int Tell(const Json& answer, const CommandLine& command, Console& console) {
  if (command.json) console.out << answer.Dump() << "\n";
  if (answer.Bool("ok").value_or(false)) {
    const std::optional<uint64_t> left = answer.Uint("waiting_for");
    if (!command.json) {
      console.out << "drained" << (left ? "; still waiting for " + std::to_string(*left) : "")
                  << "\n";
    }
    return kOk;
  }
  // An answer says error and detail; an {"event":"error"} line, code and message.
  const std::string code = answer.String("error").value_or(answer.String("code").value_or("error"));
  const std::string why =
      answer.String("detail").value_or(answer.String("message").value_or("refused: " + code));
  console.err << "leasehold: " << Shown(why) << "\n";
  if (code == "not_holder") return kNotHolder;
  return code == "not_draining" ? kFailedPrecondition : kFailed;
}

int FailOf(Console& console, bool json, const std::string& socket, const Error& error) {
  ExitCode code = kNotReachable;
  if (error.code == ErrorCode::kTimeout) code = kTimedOut;
  return Fail(console, json, code, code == kTimedOut ? "timeout" : "not_reachable",
              socket + ": " + Shown(error.message));
}

}  // namespace

int DrainedCommand(const CommandLine& command, loop::Loop& loop, Console& console) {
  const Result<std::string> path = FindSocket(command);
  if (!path) return FailWith(console, command.json, path.error());
  const Result<base::Address> address = base::ParseAddress("unix:" + *path);
  if (!address) return FailWith(console, command.json, address.error());
  LineSocket socket(loop, command.timeout);
  if (base::Status up = socket.Connect(*address); !up) {
    return FailOf(console, command.json, *path, up.error());
  }
  const Result<Json> hello = socket.Next();
  if (!hello) return FailOf(console, command.json, *path, hello.error());
  if (hello->String("event") == "error") return Tell(*hello, command, console);  // not let in
  std::string lease = command.lease;
  std::optional<uint64_t> token = command.token;
  if (const base::Status chosen = Choose(*hello, lease, token); !chosen) {
    return Fail(console, command.json, kFailedPrecondition, "not_draining", chosen.error().message);
  }
  std::string line;
  base::JsonWriter json(line);
  json.BeginObject().Member("op", "drained").Member("lease", lease);
  json.Key("token").Token(*token);
  if (!command.client_name.empty()) json.Member("name", command.client_name);
  json.EndObject();
  socket.Send(line);
  for (;;) {
    const Result<Json> answer = socket.Next();
    if (!answer) return FailOf(console, command.json, *path, answer.error());
    if (answer->Find("op") || answer->String("event") == "error") {
      return Tell(*answer, command, console);
    }
  }
}

}  // namespace leasehold::cli
