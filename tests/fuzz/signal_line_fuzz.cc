// Lines of a client of the signal socket. Asserted of any bytes: each line that is not empty gets
// exactly one answer, which is one line of JSON, until the first that is too long, which gets one
// error line and the end; in whatever pieces they arrive the answers are the same; what is waited
// for and what is asked of the sidecar is what the lines say (read here once more); a client that
// reads nothing is dropped at its bound.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "admin/signal_client.h"
#include "admin/signal_ops.h"
#include "base/text.h"
#include "fuzz/client_stream.h"
#include "fuzz/fuzz_target.h"
#include "lib/fake_control.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "proto/json.h"

namespace leasehold::fuzz {
namespace {

using admin::SignalClient;
using proto::Json;
using Outcome = lease::StepDownDone::Outcome;

// What is kept for a client that reads nothing, and one answer more (below 8 KiB here).
constexpr size_t kUnreadBytes = SignalClient::kQueueBytesMax;

// The only client there is.
class OneClient final : public admin::SignalRegistry {
 public:
  void Set(SignalClient* client) { client_ = client; }
  size_t WaitingFor(const std::string& lease, uint64_t token) const override {
    return client_->RegisteredFor(lease) && !client_->HasDrained(lease, token) ? 1 : 0;
  }
  size_t DrainedByName(const std::string& lease, uint64_t token, std::string_view name,
                       int uid) override {
    CHECK(!name.empty() && name.size() <= 64, "a name that none can have");
    if (client_->name() != name || client_->uid() != uid || !client_->RegisteredFor(lease))
      return 0;
    client_->SetDrained(lease, token);
    return 1;
  }
  void Changed(const std::string& lease) override { CHECK(!lease.empty(), "a change of nothing"); }

 private:
  SignalClient* client_ = nullptr;
};

struct Spoken {
  std::string answers;
  std::vector<admin::StepDownAsk> asked;
  bool over = false;
};

// A lease that is held, one that drains under token 12, and one that is another's.
void SetLeases(testing::FakeControl& control, bool one) {
  if (one) return;
  control.lease_views.push_back(testing::FakeControl::Holding("draining", 12));
  control.lease_views.back().view.state = lease::State::kDraining;
  control.lease_views.push_back(testing::FakeControl::Standby("a/b", 3, "n2"));
}

// One loop for all inputs: to make one costs more than anything else here, and between two inputs
// it has nothing on it.
loop::Loop& TheLoop() {
  static loop::Loop loop;
  return loop;
}

Spoken Speak(std::string_view input, int way, bool reads_nothing) {
  loop::Loop& loop = TheLoop();
  const std::unique_ptr<observe::Log> log = observe::Log::Silent();
  testing::FakeControl control;
  SetLeases(control, Hash(input) % 4 == 0);
  OneClient registry;
  admin::SignalOps ops(control, registry, *log);
  bool gone = false;
  const SignalClient::Owner owner{
      [&](SignalClient& client, std::string_view line) {
        CHECK(!line.empty() && line.size() <= SignalClient::kLineBytesMax, "no line");
        ops.Handle(client, line);
        CHECK(client.pending() <= SignalClient::kPendingMax, "more wait than may");
      },
      [](SignalClient&) {}, [&](SignalClient&, std::string_view) { gone = true; }};
  Spoken spoken;
  ClientEnd end;
  end.reads_nothing = reads_nothing;
  {
    const auto client =
        std::make_shared<SignalClient>(loop, owner, std::make_unique<ClientStream>(end));
    registry.Set(client.get());
    client->Start();
    Splitter pieces(input, way);
    while (!pieces.done() && end.Send(pieces.Next())) {
    }
    // Outcomes come at last, in order; a client that is gone needs none of them.
    for (size_t i = 0; i < control.asked.size(); ++i) {
      spoken.asked.push_back(control.asked[i].ask);
      control.Finish(i, i % 2 == 0 ? Outcome::kTakenOver : Outcome::kFailedPrecondition);
    }
    end.End();
    if (!end.over) client->Close("");
    CHECK(gone, "a client that is over was not let go");
  }
  loop.Post([] {});
  loop.RunOnce();  // lets the client's timer go
  spoken.answers = end.received;
  spoken.over = end.over;
  return spoken;
}

struct Expected {
  size_t lines = 0;  // that get an answer
  bool too_long = false;
  std::vector<std::string> may_ask;  // those that are a step-down, if they are right
};

Expected Expect(std::string_view input) {
  Expected expected;
  while (!input.empty() && !expected.too_long) {
    const size_t end = input.find('\n');
    std::string_view line = input.substr(0, end);
    expected.too_long = line.size() > SignalClient::kLineBytesMax;
    if (end == std::string_view::npos || expected.too_long) break;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) ++expected.lines;
    if (line.find("step_down") != std::string_view::npos ||
        line.find('\\') != std::string_view::npos) {
      expected.may_ask.emplace_back(line);
    }
    input.remove_prefix(end + 1);
  }
  return expected;
}

void CheckAnswers(const Expected& expected, const std::string& answers) {
  CHECK(answers.empty() || answers.ends_with('\n'), "an answer without its end");
  size_t lines = 0;
  size_t too_long = 0;
  for (const std::string_view line : base::Split(answers, '\n')) {
    if (line.empty()) continue;
    ++lines;
    const base::Result<Json> json = Json::Parse(line);
    CHECK(json.ok() && json->is_object(), "an answer that is no JSON object");
    const bool is_error = json->String("event") == "error";
    CHECK(is_error || (json->String("op") && json->Bool("ok")), "neither an answer nor an error");
    CHECK(!is_error || !json->String("message")->empty(), "an error without a sentence");
    CHECK(json->Bool("ok") != false || !json->String("error")->empty(), "a no without a word");
    if (is_error && json->String("code") == "line_too_long") ++too_long;
  }
  CHECK(lines == expected.lines + (expected.too_long ? 1 : 0), "not one answer to each line");
  CHECK(too_long == (expected.too_long ? 1 : 0), "a long line was taken, or a short one not");
}

// What is asked of the sidecar stands in a line, with a precondition.
void CheckAsked(const Expected& expected, const Spoken& spoken) {
  size_t at = 0;
  for (const admin::StepDownAsk& ask : spoken.asked) {
    CHECK(!ask.lease.empty() && !ask.expected.node_id.empty() && ask.expected.token != 0,
          "a step-down without a precondition");
    const auto says_so = [&](const std::string& line) {
      const base::Result<Json> json = Json::Parse(line);
      return json.ok() && json->String("op") == "step_down" &&
             json->String("expected_node_id") == ask.expected.node_id &&
             json->Token("expected_token") == ask.expected.token &&
             json->Bool("take_back").value_or(true) == ask.take_back &&
             json->String("lease").value_or(ask.lease) == ask.lease;
    };
    while (at < expected.may_ask.size() && !says_so(expected.may_ask[at])) ++at;
    CHECK(at < expected.may_ask.size(), "a step-down that nobody asked for");
    ++at;
  }
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  const Expected expected = Expect(input);
  const Spoken whole = Speak(input, 0, false);
  CheckAnswers(expected, whole.answers);
  CheckAsked(expected, whole);
  // An answer costs much more than a line: few ways, drawn by the input.
  const int way = Hash(input) % 2 == 0 ? 1 : 2;
  const Spoken pieces = Speak(input, way, false);
  CHECK(pieces.answers == whole.answers, "answers depend on the pieces that lines arrive in");
  CHECK(pieces.asked.size() == whole.asked.size(), "what is asked depends on the pieces");
  if (whole.answers.size() < kUnreadBytes) return 0;
  const Spoken unread = Speak(input, way, true);
  CHECK(unread.answers.size() <= kUnreadBytes + 8192,
        "a client that reads nothing is written to without bound");
  return 0;
}
