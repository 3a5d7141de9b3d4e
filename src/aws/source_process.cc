#include "aws/source_process.h"

#include <optional>
#include <utility>
#include <vector>

#include "aws/source_json.h"
#include "base/text.h"
#include "loop/child.h"
#include "proto/json.h"

namespace leasehold::aws {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

// As for an answer of an endpoint (source_http.cc); one more byte shows that it was longer.
constexpr size_t kOutputBytesMax = size_t{64} * 1024;

class ProcessFetch final : public Fetching {
 public:
  ProcessFetch(SourceContext& context, std::string who, FetchDone done)
      : context_(context), who_(std::move(who)), done_(std::move(done)) {}

  base::Status Start(std::vector<std::string> words) {
    loop::ChildOptions options;
    options.argv = std::move(words);
    options.timeout = context_.process_timeout;
    options.output_bytes_max = kOutputBytesMax + 1;
    options.stderr_dropped = true;
    auto child = loop::Child::Start(context_.loop, options,
                                    [this](const loop::ChildExit& exit) { OnExit(exit); });
    if (!child) {
      return Error{ErrorCode::kRefused, who_ + ": credential_process: " + child.error().message};
    }
    child_ = std::move(child).value();
    return {};
  }

 private:
  void OnExit(const loop::ChildExit& exit) {
    const FetchDone done = std::move(done_);
    done(Judge(exit));  // may destroy this object
  }

  Error Failed(const std::string& how) const {
    return {ErrorCode::kRefused, who_ + ": credential_process " + how};
  }

  Result<Fetched> Judge(const loop::ChildExit& exit) const {
    if (exit.timed_out) {
      return Error{ErrorCode::kTimeout, who_ + ": credential_process did not end within " +
                                            base::FormatDuration(context_.process_timeout) +
                                            " and was killed"};
    }
    if (exit.signal != 0) return Failed("was ended by signal " + std::to_string(exit.signal));
    if (exit.code != 0) {
      return Failed("ended with exit code " + std::to_string(exit.code) +
                    "; run it by hand to see what it says");
    }
    if (exit.output.size() > kOutputBytesMax) {
      return Failed("printed more than " + base::FormatSize(kOutputBytesMax));
    }
    const std::string who = who_ + ": credential_process";
    const Result<proto::Json> json = proto::Json::Parse(exit.output);
    if (!json || !json->is_object()) return Failed("printed something that is no JSON object");
    if (json->Int("Version") != 1) return Failed("printed JSON whose Version is not 1");
    const JsonForm form{"SessionToken", false, false};
    Result<Credentials> credentials = ParseCredentialsJson(exit.output, form, who);
    if (!credentials) return credentials.error();
    credentials->source = "credential_process of " + who_;
    return Fetched{.credentials = std::move(credentials).value()};
  }

  SourceContext& context_;
  const std::string who_;
  FetchDone done_;
  std::unique_ptr<loop::Child> child_;
};

}  // namespace

std::unique_ptr<Fetching> FetchFromProcess(SourceContext& context, const std::string& command,
                                           const std::string& who, FetchDone done) {
  Result<std::vector<std::string>> words = base::SplitCommand(command);
  if (!words) {
    return std::make_unique<ReadyFetch>(
        context.loop,
        Error{ErrorCode::kRefused, who + ": credential_process: " + words.error().message},
        std::move(done));
  }
  auto fetch = std::make_unique<ProcessFetch>(context, who, done);
  if (base::Status status = fetch->Start(std::move(words).value()); !status) {
    return std::make_unique<ReadyFetch>(context.loop, status.error(), std::move(done));
  }
  return fetch;
}

}  // namespace leasehold::aws
