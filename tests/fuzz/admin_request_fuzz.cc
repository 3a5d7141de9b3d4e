// Requests to the localhost API, from whoever reaches its port, through the real connection, rules
// and routes, with a token configured. Asserted of any bytes: the answers are well-formed HTTP in
// the order of the requests, one to each, until the connection says that it ends; errors are
// problem+json whose status is the status line's, the rest that calls itself JSON is JSON; in
// whatever pieces the bytes arrive the answers are the same; and nothing is asked of the sidecar
// but by a POST with the token, a Host and an Origin that are ours, and a precondition (read here
// once more).
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "admin/access.h"
#include "admin/event_streams.h"
#include "admin/http_connection.h"
#include "admin/routes.h"
#include "base/text.h"
#include "fuzz/client_stream.h"
#include "fuzz/fuzz_target.h"
#include "lib/fake_control.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "proto/http1.h"
#include "proto/json.h"

namespace leasehold::fuzz {
namespace {

namespace http1 = proto::http1;
using proto::Json;

constexpr std::string_view kToken = "s3cret";

// Small, so that inputs reach them.
admin::HttpServerOptions Options() {
  admin::HttpServerOptions options;
  options.head_bytes_max = 1024;
  options.target_bytes_max = 256;
  options.body_bytes_max = 512;
  return options;
}

struct Request {
  std::string method, target, host, origin, authorization, body;
};

struct Spoken {
  std::string answers;
  std::vector<admin::StepDownAsk> asked;
};

// One loop for all inputs: to make one costs more than anything else here, and between two inputs
// it has nothing on it.
loop::Loop& TheLoop() {
  static loop::Loop loop;
  return loop;
}

// An API with one connection.
class Api {
 public:
  explicit Api(bool token) : log_(observe::Log::Silent()), rules_(Rules(token)) {
    control_.lease_views.push_back(testing::FakeControl::Standby("a/b", 3, "n2"));
    control_.answer_at_once = testing::FakeControl::Done(lease::StepDownDone::Outcome::kTakenOver,
                                                         {"orders", {"n1", 12}});
    metrics_.AddCounter("leasehold_fuzz_total", "A counter.", {{"lease", "orders"}}).Add();
    observe::Event event;
    event.name = "lease.acquired";
    event.lease = "orders";
    event.token = 12;
    bus_.Publish(event);
  }
  Spoken Speak(std::string_view input, int way) {
    ClientEnd end;
    {
      const auto connection =
          std::make_shared<admin::HttpConnection>(owner_, std::make_unique<ClientStream>(end));
      connection->Start();
      Splitter pieces(input, way);
      while (!pieces.done() && end.Send(pieces.Next())) Turn();
      for (int i = 0; i < 3 + static_cast<int>(input.size() / 64); ++i) Turn();
      end.End();
      Turn();
    }
    Spoken spoken;
    spoken.answers = end.received;
    for (const auto& asked : control_.asked) spoken.asked.push_back(asked.ask);
    return spoken;
  }

 private:
  static admin::AccessRules Rules(bool token) {
    admin::AdminOptions options;
    options.allowed_hosts = {"api.internal"};
    base::Address listen;
    listen.host = "127.0.0.1";
    listen.port = 9090;
    auto rules = admin::AccessRules::Make(options, listen, token ? kToken : "");
    CHECK(rules.ok(), "rules that cannot be made");
    return std::move(rules).value();
  }
  // One turn of the loop, without waiting: more than four requests at once are spread over turns.
  void Turn() {
    loop_.Post([] {});
    loop_.RunOnce();
  }

  loop::Loop& loop_ = TheLoop();
  std::unique_ptr<observe::Log> log_;
  testing::FakeControl control_;
  observe::Metrics metrics_;
  observe::EventBus bus_;
  admin::AccessRules rules_;
  admin::EventStreams streams_{loop_, control_, bus_, *log_};
  admin::Routes routes_{loop_, control_, metrics_, streams_, *log_};
  const admin::HttpServerOptions options_ = Options();
  const admin::HttpHandler handler_ = [this](const admin::HttpRequest& request,
                                             const admin::HttpReply& reply) {
    routes_.Handle(rules_, request, reply);
  };
  const admin::HttpConnection::Owner owner_{loop_,
                                            options_,
                                            handler_,
                                            [](admin::HttpConnection&) {},
                                            [](admin::HttpConnection&) {},
                                            [](admin::HttpConnection&, bool) {}};
};

Spoken Speak(bool token, std::string_view input, int way) {
  Spoken spoken = Api(token).Speak(input, way);
  TheLoop().Post([] {});
  TheLoop().RunOnce();  // lets its timers go
  return spoken;
}

// The requests that are complete, up to the first error.
std::vector<Request> Requests(std::string_view input) {
  http1::Limits limits;
  limits.head_bytes_max = Options().head_bytes_max;
  limits.target_bytes_max = Options().target_bytes_max;
  limits.body_bytes_max = Options().body_bytes_max;
  http1::RequestParser parser(limits);
  std::vector<Request> requests;
  Request request;
  for (;;) {
    const http1::Step step = parser.Next(input);
    switch (step.event) {
      case http1::Event::kNeedMore:
      case http1::Event::kError: return requests;
      case http1::Event::kHead: {
        const http1::RequestHead& head = parser.head();
        request = {std::string(head.method),
                   std::string(head.target),
                   std::string(head.host),
                   std::string(head.Find("Origin")),
                   std::string(head.Find("Authorization")),
                   ""};
        break;
      }
      case http1::Event::kBody: request.body += step.body; break;
      case http1::Event::kComplete: requests.push_back(std::move(request)); break;
    }
    input.remove_prefix(step.consumed);
  }
}

void CheckProblem(const Json& json, int status) {
  CHECK(json.Int("status") == status, "a problem of another status");
  CHECK(json.String("type").value_or("").starts_with("urn:leasehold:problem:"), "of what type?");
  CHECK(!json.String("title").value_or("").empty(), "a problem without a title");
  const std::string detail = json.String("detail").value_or("");
  CHECK(!detail.empty(), "a problem without a sentence");
  for (const char c : detail) {
    CHECK(static_cast<unsigned char>(c) >= ' ', "a sentence shows raw bytes");
  }
}

void CheckBody(const http1::ResponseHead& head, const std::string& type, const std::string& body) {
  if (head.status >= 400) CHECK(type == "application/problem+json", "an error that is no problem");
  if (type == "text/event-stream") CHECK(head.status == 200, "a stream of an error");
  if (!type.starts_with("application/")) return;
  const base::Result<Json> json = Json::Parse(body);
  CHECK(json.ok() && json->is_object(), "JSON that is none");
  if (head.status >= 400) CheckProblem(*json, head.status);
}

// A stream bears the time of day.
std::string WithoutDigits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

bool IsKnown(int status) {
  constexpr int kKnown[] = {100, 200, 202, 400, 401, 403, 404, 405, 408, 409,
                            412, 413, 414, 417, 421, 431, 500, 501, 503, 505};
  return std::ranges::find(kKnown, status) != std::end(kKnown);
}

// What the answers say; of a broken request only that it is: which of its faults is seen first
// depends on the pieces it arrives in.
std::vector<std::string> CheckAnswers(const std::vector<Request>& requests,
                                      std::string_view answers) {
  std::vector<std::string> said;
  http1::ResponseParser parser({.head_bytes_max = 4096});
  size_t answered = 0;
  bool closing = false;
  bool interim = false;
  std::string type;
  std::string body;
  const auto expect = [&] {
    parser.ExpectAnswerToHead(answered < requests.size() && requests[answered].method == "HEAD");
  };
  expect();
  for (;;) {
    const http1::Step step = parser.Next(answers);
    answers.remove_prefix(step.consumed);
    const http1::ResponseHead& head = parser.head();
    switch (step.event) {
      case http1::Event::kError: CHECK(false, "an answer that is not HTTP");
      case http1::Event::kNeedMore: {
        CHECK(answers.empty(), "bytes that belong to no answer");
        // A stream to HTTP/1.0 ends with the connection.
        const bool ended = parser.idle() || parser.Finish().event == http1::Event::kComplete;
        CHECK(ended, "an answer that does not end");
        // One more for a request that is wrong, or not whole when the client has ended.
        CHECK(closing || answered >= requests.size(), "a request without an answer");
        return said;
      }
      case http1::Event::kHead:
        CHECK(!closing, "an answer after the last");
        CHECK(IsKnown(head.status), "a status that is not in the API's description");
        interim = head.interim();
        if (interim) break;
        closing = !head.keep_alive;
        type = head.Find("Content-Type");
        CHECK(head.Find("Cache-Control") == "no-store", "an answer that may be kept");
        break;
      case http1::Event::kBody: body += step.body; break;
      case http1::Event::kComplete:
        if (std::exchange(interim, false)) break;
        CHECK(answered <= requests.size(), "more answers than requests");
        if (answered >= requests.size()) CHECK(closing, "goes on after a broken request");
        if (type == "text/event-stream") body = WithoutDigits(body);
        said.push_back(answered >= requests.size() ? "broken"
                                                   : std::to_string(head.status) + type + body);
        if (answered >= requests.size() || requests[answered].method != "HEAD") {
          CheckBody(head, type, body);
        }
        body.clear();
        ++answered;
        expect();
        break;
    }
  }
}

bool HostIsOurs(const std::string& host) {
  const std::string name = base::ToLower(host.substr(0, host.rfind(':')));
  for (const std::string_view ours : {"localhost", "localhost.", "127.0.0.1", "127.0.0.1.", "[::1]",
                                      "api.internal", "api.internal."}) {
    if (name == ours || base::EqualsIgnoreCase(host, ours)) return true;
  }
  return false;
}

void CheckAsked(const std::vector<Request>& requests, const std::vector<admin::StepDownAsk>& asked,
                bool token) {
  size_t at = 0;
  for (const admin::StepDownAsk& ask : asked) {
    CHECK(!ask.expected.node_id.empty() && ask.expected.token != 0, "without a precondition");
    const auto asks_so = [&](const Request& request) {
      if (request.method != "POST" || request.target.find("/step-down") == std::string::npos) {
        // An escape may stand for any letter.
        if (request.method != "POST" || request.target.find('%') == std::string::npos) return false;
      }
      if (!HostIsOurs(request.host)) return false;
      if (!request.origin.empty() &&
          request.origin.find("://127.0.0.1:9090") == std::string::npos &&
          request.origin.find("://localhost:9090") == std::string::npos &&
          request.origin.find("://[::1]:9090") == std::string::npos &&
          base::ToLower(request.origin).find("://api.internal") == std::string::npos &&
          base::ToLower(request.origin).find("://localhost") == std::string::npos) {
        return false;
      }
      if (token && !request.authorization.ends_with(kToken)) return false;
      const base::Result<Json> body = Json::Parse(request.body);
      return body.ok() && body->String("expected_node_id") == ask.expected.node_id &&
             body->Token("expected_token") == ask.expected.token &&
             body->Bool("take_back").value_or(true) == ask.take_back;
    };
    while (at < requests.size() && !asks_so(requests[at])) ++at;
    CHECK(at < requests.size(), "a step-down that nobody who may has asked for");
    ++at;
  }
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  const bool token = Hash(input) % 2 == 0;
  const std::vector<Request> requests = Requests(input);
  const Spoken whole = Speak(token, input, 0);
  const std::vector<std::string> said = CheckAnswers(requests, whole.answers);
  CheckAsked(requests, whole.asked, token);
  for (int way = 1; way < Splitter::kWays; ++way) {
    const Spoken pieces = Speak(token, input, way);
    CHECK(CheckAnswers(requests, pieces.answers) == said,
          "answers depend on the pieces that requests arrive in");
    CHECK(pieces.asked.size() == whole.asked.size(), "what is asked depends on the pieces");
  }
  return 0;
}
