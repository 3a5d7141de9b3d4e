#include "admin/routes.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/audit.h"
#include "admin/event_ask.h"
#include "admin/openapi.h"
#include "admin/probes.h"
#include "admin/problem.h"
#include "admin/step_down_ask.h"
#include "admin/views_json.h"
#include "base/json_writer.h"
#include "base/text.h"

namespace leasehold::admin {
namespace {

// Askers waiting at a time. All of them wait for the same few terms, so more means a client that
// asks in a loop without waiting.
constexpr uint32_t kPendingMax = 256;
// Entries of the audit in one answer: a thousand are some 600 KB, and take the loop a few
// milliseconds.
constexpr uint64_t kAuditLimitDefault = 100;
constexpr uint64_t kAuditLimitMax = 1000;

HttpAnswer JsonAnswer(std::string body, int status = 200) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = std::move(body);
  return answer;
}

HttpAnswer NoSuchLease(const std::string& lease) {
  return ProblemAnswer(
      404, "not_found",
      "there is no lease \"" + base::Printable(lease) + "\" here; /v1/leases lists them");
}

// Literal segments must be equal; "{name}" takes any that is not empty.
bool Matches(std::string_view pattern, const Target& target, std::string* name) {
  const std::vector<std::string_view> parts = base::Split(pattern.substr(1), '/');
  if (parts.size() != target.segments.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "{name}") {
      if (target.segments[i].empty()) return false;
      *name = target.segments[i];
    } else if (parts[i] != target.segments[i]) {
      return false;
    }
  }
  return true;
}

HttpAnswer OutcomeAnswer(const lease::StepDownDone& done, const std::string& lease,
                         const NodeView& node) {
  using Outcome = lease::StepDownDone::Outcome;
  if (done.outcome == Outcome::kFailedPrecondition || done.outcome == Outcome::kNotHolder) {
    return ProblemAnswer(done.outcome == Outcome::kNotHolder ? 409 : 412,
                         StepDownErrorCode(done.outcome), StepDownSentence(done, lease));
  }
  lease::StepDownDone told = done;
  told.detail = StepDownSentence(done, lease);
  std::string body;
  base::JsonWriter json(body);
  json.BeginObject().Member("lease", lease);
  WriteStepDownOutcome(json, told, node);
  json.EndObject();
  return JsonAnswer(std::move(body));
}

int StatusOf(base::ErrorCode code) {
  switch (code) {
    case base::ErrorCode::kInvalid: return 400;
    case base::ErrorCode::kNotFound: return 404;
    case base::ErrorCode::kConflict: return 409;
    case base::ErrorCode::kInternal: return 500;
    default: return 503;
  }
}

}  // namespace

struct Routes::Route {
  std::string_view method;  // GET stands for HEAD too
  std::string_view path;
  Access access;
  void (Routes::*handler)(const Call&);
};

// The API, one row per route.
const Routes::Route Routes::kRoutes[] = {
    {"GET", "/", Access::kRead, &Routes::Index},
    {"GET", "/livez", Access::kProbe, &Routes::Livez},
    {"GET", "/readyz", Access::kProbe, &Routes::Readyz},
    {"GET", "/leaderz", Access::kProbe, &Routes::Leaderz},
    {"GET", "/standbyz", Access::kProbe, &Routes::Standbyz},
    {"GET", "/metrics", Access::kRead, &Routes::Metrics},
    {"GET", "/v1/status", Access::kRead, &Routes::Status},
    {"GET", "/v1/leases", Access::kRead, &Routes::Leases},
    {"GET", "/v1/leases/{name}", Access::kRead, &Routes::Lease},
    {"GET", "/v1/leases/{name}/describe", Access::kRead, &Routes::Describe},
    {"POST", "/v1/leases/{name}/step-down", Access::kChange, &Routes::StepDown},
    {"GET", "/v1/config", Access::kRead, &Routes::Config},
    {"GET", "/v1/events", Access::kRead, &Routes::Events},
    {"GET", "/v1/audit", Access::kRead, &Routes::Audit},
    {"GET", "/v1/openapi.json", Access::kRead, &Routes::OpenApi},
};

Routes::Routes(loop::Loop& loop, Control& control, observe::Metrics& metrics, EventStreams& events,
               observe::Log& log)
    : loop_(loop),
      control_(control),
      metrics_(metrics),
      events_(events),
      log_(log),
      pending_(std::make_shared<uint32_t>(0)) {}

void Routes::Handle(const AccessRules& rules, HttpRequest request, const HttpReply& reply) {
  std::string authority;
  const auto target = ParseTarget(request.target, &authority);
  if (!authority.empty()) request.host = authority;
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  const Route* found = nullptr;
  std::string name;
  std::string allow;
  if (target.ok()) {
    for (const Route& route : kRoutes) {
      if (!Matches(route.path, *target, &name)) continue;
      allow += (allow.empty() ? "" : ", ") +
               std::string(route.method == "GET" ? "GET, HEAD" : route.method);
      if (route.method == request.method || (is_read && route.method == "GET")) found = &route;
    }
  }
  // Who may not ask is not told what there is, either.
  const Access access = found != nullptr ? found->access
                        : is_read        ? Access::kRead
                                         : Access::kChange;
  if (auto refusal = rules.Refuse(request, access)) return reply(*std::move(refusal));
  if (!target.ok()) return reply(ProblemAnswer(400, "bad_request", target.error().message));
  if (found == nullptr) {
    HttpAnswer answer =
        allow.empty()
            ? ProblemAnswer(404, "not_found",
                            "there is nothing at \"" + base::Printable(request.target) +
                                "\"; /v1/status is a good start")
            : ProblemAnswer(405, "method_not_allowed",
                            base::Printable(request.method, 16) + " is not possible at \"" +
                                base::Printable(request.target) + "\"; use " + allow);
    if (!allow.empty()) answer.headers.emplace_back("Allow", allow);
    return reply(std::move(answer));
  }
  if (name.empty()) name = target->One("lease").value_or("");
  (this->*found->handler)(Call{request, *target, std::move(name), reply});
}

void Routes::Index(const Call& call) {
  std::string body;
  base::JsonWriter json(body);
  json.BeginObject().Member("name", "leasehold").Member("version", control_.node().version);
  json.Member("description", "/v1/openapi.json").Key("routes").BeginArray();
  for (const Route& route : kRoutes) {
    json.BeginObject().Member("method", route.method).Member("path", route.path).EndObject();
  }
  json.EndArray().EndObject();
  call.reply(JsonAnswer(std::move(body)));
}

void Routes::Livez(const Call& call) { call.reply(admin::Livez()); }
void Routes::Readyz(const Call& call) { call.reply(admin::Readyz(control_, call.lease)); }
void Routes::Leaderz(const Call& call) { call.reply(admin::Leaderz(control_, call.lease)); }
void Routes::Standbyz(const Call& call) { call.reply(admin::Standbyz(control_, call.lease)); }

void Routes::Status(const Call& call) {
  call.reply(JsonAnswer(StatusJson(control_, loop::Loop::Now())));
}

void Routes::Leases(const Call& call) {
  call.reply(JsonAnswer(LeasesJson(control_, loop::Loop::Now())));
}

void Routes::Lease(const Call& call) {
  const std::optional<LeaseView> lease = control_.lease(call.lease);
  if (!lease) return call.reply(NoSuchLease(call.lease));
  call.reply(JsonAnswer(LeaseJson(*lease, control_.node(), loop::Loop::Now())));
}

void Routes::Describe(const Call& call) {
  const std::optional<LeaseView> lease = control_.lease(call.lease);
  if (!lease) return call.reply(NoSuchLease(call.lease));
  if (lease->view.step_down_in_progress) {
    return call.reply(ProblemAnswer(
        412, "failed_precondition",
        "a step-down of lease \"" + call.lease +
            "\" or its hold-off is under way; who holds it is not settled, ask again after it"));
  }
  const NodeView node = control_.node();
  if (HolderOf(*lease, node).node_id.empty()) {
    return call.reply(ProblemAnswer(404, "no_holder",
                                    "nobody is known to hold lease \"" + call.lease + "\" now"));
  }
  call.reply(JsonAnswer(DescribeJson(*lease, node)));
}

void Routes::StepDown(const Call& call) {
  if (!control_.lease(call.lease)) return call.reply(NoSuchLease(call.lease));
  const auto body = proto::Json::Parse(call.request.body);
  if (!body.ok()) {
    return call.reply(ProblemAnswer(400, "bad_request",
                                    "the body is not JSON: " + body.error().message +
                                        "; give an object with expected_node_id and "
                                        "expected_token"));
  }
  StepDownAsk ask;
  ask.lease = call.lease;
  bool wait = true;
  base::Status status = ReadStepDownAsk(*body, {"wait"}, ask);
  if (status.ok()) status = ReadOptionalBool(*body, "wait", wait);
  if (!status.ok()) return call.reply(ProblemAnswer(400, "bad_request", status.error().message));
  if (*pending_ >= kPendingMax) {
    return call.reply(ProblemAnswer(
        503, "limit",
        std::to_string(kPendingMax) + " step-downs wait for their outcome already; ask later"));
  }
  AskStepDown(ask, wait, call);
}

void Routes::AskStepDown(const StepDownAsk& ask, bool wait, const Call& call) {
  log_.Info("admin.step_down_asked", "a step-down was asked for over the API",
            {{"lease", ask.lease},
             {"expected_node_id", ask.expected.node_id},
             {"expected_token", ask.expected.token},
             {"take_back", ask.take_back},
             {"peer", call.request.peer}});
  ++*pending_;
  // The reply is harmless when the client has gone; the step-down itself hangs on nobody.
  const auto status =
      control_.StepDown(ask, [pending = pending_, reply = call.reply, lease = ask.lease,
                              node = control_.node()](const lease::StepDownDone& done) {
        --*pending;
        reply(OutcomeAnswer(done, lease, node));
      });
  if (!status.ok()) {
    --*pending_;
    return call.reply(ProblemAnswer(StatusOf(status.error().code),
                                    base::ErrorCodeName(status.error().code),
                                    status.error().message));
  }
  if (wait) return;
  // A step-down that fails at once has answered by the next turn of the loop; one that has not is
  // under way.
  loop_.Post([reply = call.reply, lease = ask.lease] {
    std::string body;
    base::JsonWriter json(body);
    json.BeginObject().Member("lease", lease).Member("outcome", "pending");
    json.Member("detail", "the step-down is under way; /v1/leases shows how it goes").EndObject();
    reply(JsonAnswer(std::move(body), 202));
  });
}

void Routes::Config(const Call& call) { call.reply(JsonAnswer(control_.ConfigJson())); }

void Routes::Audit(const Call& call) {
  if (!call.lease.empty() && !control_.lease(call.lease))
    return call.reply(NoSuchLease(call.lease));
  uint64_t limit = kAuditLimitDefault;
  if (const auto at = call.target.query.find("limit"); at != call.target.query.end()) {
    const auto asked = base::ParseUint64(at->second);
    if (!asked.ok() || *asked == 0 || *asked > kAuditLimitMax) {
      return call.reply(ProblemAnswer(
          400, "bad_request",
          "limit=\"" + base::Printable(at->second) + "\" is not possible; give 1 to " +
              std::to_string(kAuditLimitMax) + " (audit.file has what came before)"));
    }
    limit = *asked;
  }
  const AuditLog* const audit = control_.audit();
  call.reply(JsonAnswer(audit != nullptr ? audit->Json(call.lease, limit) : R"({"records":[]})"));
}

void Routes::Metrics(const Call& call) {
  HttpAnswer answer;
  answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
  answer.body = metrics_.Scrape();
  call.reply(std::move(answer));
}

void Routes::Events(const Call& call) {
  auto ask = ReadEventAsk(call.target, call.request.last_event_id);
  if (!ask.ok()) return call.reply(ProblemAnswer(400, "bad_request", ask.error().message));
  if (!ask->lease.empty() && !control_.lease(ask->lease)) {
    return call.reply(NoSuchLease(ask->lease));
  }
  call.reply(events_.Answer(std::move(ask).value()));
}

void Routes::OpenApi(const Call& call) {
  HttpAnswer answer;
  answer.fixed_body = OpenApiDocument();
  call.reply(std::move(answer));
}

}  // namespace leasehold::admin
