// events: the sidecar's event stream, one line per event, resumed by itself wherever the connection
// breaks, until somebody has seen enough.
#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <optional>
#include <ostream>

#include "base/text.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "client/event_stream.h"
#include "client/http_call.h"
#include "loop/signals.h"
#include "loop/timer.h"

namespace leasehold::cli {
namespace {

using base::Duration;
using base::Error;
using base::ErrorCode;
using base::Result;
using proto::Json;

constexpr size_t kLineBytesMax = size_t{1} << 20;  // a hello of 256 leases with their gates fits
// Three heartbeats of the sidecar (admin/event_streams.h): who misses them is gone or frozen.
constexpr Duration kSilenceMax = Duration::Seconds(45);
// Between two attempts to connect: a sidecar is back within a second, or away for longer.
constexpr Duration kFirstPause = Duration::Millis(250);
constexpr Duration kLongestPause = Duration::Seconds(5);
// How often the reader of our output is looked for: `events | head -3` ends this soon.
constexpr Duration kLookEvery = Duration::Millis(250);
constexpr size_t kNameWidth = 17;  // of "node.duplicate_id": what follows stands below itself

std::string Target(const CommandLine& command) {
  std::string query;
  const auto add = [&query](std::string_view key, std::string_view value) {
    query += (query.empty() ? "?" : "&") + std::string(key) + "=" + EscapeUrl(value);
  };
  if (!command.lease.empty()) add("lease", command.lease);
  for (const std::string& event : command.events) add("event", event);
  if (!command.since.empty()) add("since", command.since);
  if (!command.follow) {
    add("follow", "false");
    if (command.since.empty()) add("since", "start");
  }
  return "/v1/events" + query;
}

// ---- a line per event ----

Color ColorOf(std::string_view event) {
  constexpr std::array<std::string_view, 5> kGood = {"lease.acquired", "lease.restored",
                                                     "gate.opened", "app.ready", "store.recovered"};
  constexpr std::array<std::string_view, 3> kPlain = {"lease.observed", "gate.closed", "hello"};
  if (std::ranges::find(kGood, event) != kGood.end()) return Color::kGood;
  if (std::ranges::find(kPlain, event) != kPlain.end()) return Color::kNone;
  return event == "lease.lost" ? Color::kBad : Color::kWarning;
}

void AddField(std::string& line, std::string_view key, const std::optional<std::string>& value) {
  if (value && !value->empty()) line += " " + std::string(key) + "=" + Shown(*value);
}

void AddHolder(std::string& line, const Json& of) {
  if (const std::optional<Json> holder = of.Find("holder")) {
    AddField(line, "holder", holder->String("node_id"));
  }
}

void PrintLine(const Console& console, const Json& event, const std::string& lease,
               const std::string& rest) {
  const std::string name = event.String("event").value_or("?");
  std::string padded = Shown(name);
  padded.resize(std::max(padded.size(), kNameWidth), ' ');
  console.out << Shown(event.String("at").value_or("?")) << "  "
              << Paint(console, ColorOf(name), padded) << "  "
              << (lease.empty() ? "-" : Shown(lease)) << rest << "\n";
}

void PrintHello(const Console& console, const Json& hello) {
  for (const Json& lease : hello.Find("leases").value_or(Json()).Elements()) {
    std::string rest;
    AddField(rest, "state", lease.String("state"));
    AddField(rest, "token", lease.String("token"));
    AddHolder(rest, lease);
    PrintLine(console, hello, lease.String("lease").value_or(""), rest);
  }
}

void PrintEvent(const Console& console, const Json& event) {
  std::string rest;
  AddField(rest, "gate", event.String("gate"));
  if (event.Token("token").value_or(0) > 0) AddField(rest, "token", event.String("token"));
  AddHolder(rest, event);
  AddField(rest, "reason", event.String("reason"));
  AddField(rest, "why", event.String("why"));
  if (const auto grace = event.Int("grace_ms")) {
    AddField(rest, "grace", base::FormatDuration(Duration::Millis(*grace)));
  }
  if (const auto detail = event.String("detail")) rest += "  " + Shown(*detail);
  PrintLine(console, event, event.String("lease").value_or(""), rest);
}

// ---- the conversation ----

class EventsReader {
 public:
  EventsReader(const CommandLine& command, ApiTarget target, loop::Loop& loop, Console& console)
      : command_(command),
        target_(std::move(target)),
        loop_(loop),
        console_(console),
        pause_timer_(loop, [this] { Connect(); }),
        look_timer_(loop, [this] { Look(); }) {}

  int Run() {
    const auto signals =
        loop::Signals::Watch(loop_, {SIGINT, SIGTERM}, [this](int /*signal*/) { End(kOk); });
    if (console_.reader_gone) look_timer_.StartAfter(kLookEvery);
    Connect();
    while (!exit_code_) loop_.Run();
    call_.reset();
    return *exit_code_;
  }

 private:
  std::string name() const { return target_.address.ToString(); }

  void Connect() {
    parser_.emplace(kLineBytesMax, [this](const client::ServerEvent& event) { Take(event); });
    client::HttpRequest request;
    request.address = target_.address;
    request.target = Target(command_);
    request.headers.emplace_back("Accept", "text/event-stream, application/problem+json");
    if (!place_.empty()) request.headers.emplace_back("Last-Event-ID", place_);
    if (!target_.token.empty()) {
      request.headers.emplace_back("Authorization", "Bearer " + target_.token);
    }
    client::HttpStreaming streaming;
    streaming.on_head = [this](const client::HttpResponse& head) { OnHead(head); };
    streaming.on_body = [this](std::string_view bytes) { OnBody(bytes); };
    streaming.silence_max = kSilenceMax;
    call_ = client::StartHttpStream(
        loop_, request, std::move(streaming),
        [this](Result<client::HttpResponse> result) { OnOver(std::move(result)); });
  }

  void OnHead(const client::HttpResponse& head) {
    const bool is_stream = std::ranges::any_of(head.headers, [](const auto& header) {
      return base::EqualsIgnoreCase(header.first, "Content-Type") &&
             header.second.starts_with("text/event-stream");
    });
    if (!is_stream) {
      return Fail({ErrorCode::kUnavailable,
                   name() + " answers, but not with events; is it a Leasehold API?"});
    }
    was_connected_ = true;
    if (std::exchange(lost_, false)) console_.err << "leasehold: connected to " << name() << "\n";
  }

  void OnBody(std::string_view bytes) {
    if (exit_code_) return;
    pause_ = kFirstPause;  // it does speak
    if (const base::Status fed = parser_->Feed(bytes); !fed.ok()) return Fail(fed.error());
    if (!parser_->last_id().empty()) place_ = parser_->last_id();
    console_.out.flush();
    if (!console_.out) End(console_.reader_gone && console_.reader_gone() ? kOk : kFailed);
  }

  void Take(const client::ServerEvent& event) {
    const Result<Json> data = Json::Parse(event.data, {.bytes_max = kLineBytesMax});
    if (exit_code_) return;
    if (!data.ok()) {
      return Fail({ErrorCode::kUnavailable,
                   name() + " sent an event that is not JSON; is it a Leasehold API?"});
    }
    if (command_.json) {
      console_.out << data->Dump() << "\n";
    } else if (event.name == "hello") {
      PrintHello(console_, *data);
    } else {
      PrintEvent(console_, *data);
    }
  }

  // The stream has ended, broken, or never began.
  void OnOver(Result<client::HttpResponse> result) {
    call_.reset();
    if (exit_code_) return;
    if (!result.ok()) {
      if (!was_connected_) return Fail(result.error());
      return Again(result.error().message);
    }
    if (result->status < 200 || result->status >= 300) {
      ApiAnswer answer;
      answer.status = result->status;
      if (const Result<Json> body = Json::Parse(result->body); body.ok()) answer.body = *body;
      if (was_connected_ && answer.status >= 500) return Again(answer.detail());
      return End(FailWith(console_, command_.json, answer));
    }
    if (!command_.follow) return End(kOk);
    Again(name() + " has ended the stream");
  }

  void Again(const std::string& why) {
    if (!std::exchange(lost_, true)) {
      console_.err << "leasehold: " << Shown(why) << "; connecting again\n";
    }
    pause_timer_.StartAfter(pause_);
    pause_ = base::Min(pause_ * 2, kLongestPause);
  }

  void Look() {
    if (console_.reader_gone()) return End(kOk);
    look_timer_.StartAfter(kLookEvery);
  }

  void Fail(const Error& error) { End(FailWith(console_, command_.json, error)); }
  // May be called from inside the call, which ends when the loop has stopped.
  void End(int exit_code) {
    if (!exit_code_) exit_code_ = exit_code;
    loop_.Stop();
  }

  const CommandLine& command_;
  const ApiTarget target_;
  loop::Loop& loop_;
  Console& console_;
  loop::Timer pause_timer_;
  loop::Timer look_timer_;
  std::unique_ptr<client::HttpCall> call_;
  std::optional<client::EventStreamParser> parser_;
  std::string place_;  // from where to resume; empty: nothing was told yet
  Duration pause_ = kFirstPause;
  bool was_connected_ = false;
  bool lost_ = false;  // and said so
  std::optional<int> exit_code_;
};

}  // namespace

int EventsCommand(const CommandLine& command, loop::Loop& loop, Console& console) {
  Result<ApiTarget> target = FindApi(command);
  if (!target) return FailWith(console, command.json, target.error());
  return EventsReader(command, *std::move(target), loop, console).Run();
}

}  // namespace leasehold::cli
