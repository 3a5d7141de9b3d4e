#include "admin/signal_ops.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "admin/step_down_ask.h"
#include "admin/views_json.h"
#include "base/json_writer.h"
#include "base/text.h"

namespace leasehold::admin {
namespace {

constexpr size_t kIdBytesMax = 128;   // of an "id" that is given back: a UUID with room to spare
constexpr size_t kNameBytesMax = 64;  // as long as a gate's
constexpr std::string_view kOpsKnown = "register, drained, step_down and status";

// One answer line. Begun with op, ok and id; the caller adds members and sends it.
class Answer {
 public:
  Answer(std::string_view op, const std::string& id, bool ok) {
    json_.BeginObject().Member("op", op).Member("ok", ok);
    if (!id.empty()) json_.Key("id").Raw(id);
  }
  static std::string Failed(std::string_view op, const std::string& id, std::string_view code,
                            std::string_view detail) {
    Answer answer(op, id, false);
    answer.json().Member("error", code).Member("detail", detail);
    return answer.Finish();
  }
  base::JsonWriter& json() { return json_; }
  std::string Finish() {
    json_.EndObject();
    return std::move(out_);
  }

 private:
  std::string out_;
  base::JsonWriter json_{out_};
};

// The id as JSON text; empty when none was given; nullopt when it is none that can be given back.
std::optional<std::string> ReadId(const proto::Json& body) {
  const std::optional<proto::Json> id = body.Find("id");
  if (!id) return "";
  const bool good_type =
      id->type() == proto::Json::Type::kString || id->type() == proto::Json::Type::kInt;
  std::string text = good_type ? id->Dump() : "";
  if (text.empty() || text.size() > kIdBytesMax) return std::nullopt;
  return text;
}

bool IsName(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kNameBytesMax &&
         std::all_of(text.begin(), text.end(), good);
}

}  // namespace

struct SignalOps::Op {
  SignalClient& client;
  const proto::Json& body;
  std::string name;
  std::string id;

  void Fail(std::string_view code, std::string_view detail) const {
    client.Send(Answer::Failed(name, id, code, detail));
  }
  void BadInput(std::string_view why) const { client.Send(SignalErrorLine("invalid", why)); }
  // The lease that is meant: "lease", or the only one there is. nullopt: answered already.
  std::optional<LeaseView> Lease(const Control& control) const {
    if (!body.Find("lease")) {
      std::vector<LeaseView> leases = control.leases();
      if (leases.size() == 1) return std::move(leases[0]);
      BadInput("\"lease\" is missing and there is more than one; name the lease");
      return std::nullopt;
    }
    const std::optional<std::string> lease = body.String("lease");
    if (!lease) {
      BadInput("\"lease\" must be the name of a lease as text");
      return std::nullopt;
    }
    std::optional<LeaseView> view = control.lease(*lease);
    if (!view) Fail("not_found", "there is no lease \"" + base::Printable(*lease) + "\" here");
    return view;
  }
  // The "name" of a client; empty: none is given. nullopt: answered already.
  std::optional<std::string> ClientName() const {
    if (!body.Find("name")) return "";
    std::optional<std::string> given = body.String("name");
    if (given && IsName(*given)) return given;
    BadInput("\"name\" must be 1 to 64 letters, digits, '.', '_' or '-'");
    return std::nullopt;
  }
};

std::string HelloLine(const Control& control) {
  std::string out;
  base::JsonWriter json(out);
  json.BeginObject().Member("event", "hello");
  WriteHello(json, control, "", loop::Loop::Now());
  json.EndObject();
  return out;
}

void SignalOps::Handle(SignalClient& client, std::string_view line) {
  const auto body = proto::Json::Parse(line);
  if (!body.ok())
    return client.Send(SignalErrorLine("invalid", "not JSON: " + body.error().message));
  const std::optional<std::string> name = body->String("op");
  if (!name) {
    return client.Send(SignalErrorLine(
        "invalid", "a line must be a JSON object with \"op\": one of " + std::string(kOpsKnown)));
  }
  std::optional<std::string> id = ReadId(*body);
  if (!id) {
    return client.Send(SignalErrorLine("invalid", "\"id\" must be an integer or text of at most " +
                                                      std::to_string(kIdBytesMax) + " bytes"));
  }
  const Op op{client, *body, *name, *std::move(id)};
  if (op.name == "register") return Register(op);
  if (op.name == "drained") return Drained(op);
  if (op.name == "step_down") return StepDown(op);
  if (op.name == "status") return Status(op);
  op.BadInput("\"" + base::Printable(op.name) + "\" is not an op; known are " +
              std::string(kOpsKnown));
}

void SignalOps::Register(const Op& op) {
  const std::optional<std::string> client_name = op.ClientName();
  if (!client_name) return;
  Answer answer(op.name, op.id, true);
  if (op.body.Find("lease")) {
    const std::optional<LeaseView> lease = op.Lease(control_);
    if (!lease) return;
    op.client.Register(lease->view.lease);
    registry_.Changed(lease->view.lease);
    answer.json().Member("lease", lease->view.lease);
  } else {
    op.client.RegisterAll();
    for (const LeaseView& lease : control_.leases()) registry_.Changed(lease.view.lease);
    answer.json().Key("lease").Null();  // all of them
  }
  if (!client_name->empty()) {
    op.client.SetName(*client_name);
    answer.json().Member("name", *client_name);
  }
  op.client.Send(answer.Finish());
}

void SignalOps::Drained(const Op& op) {
  const std::optional<uint64_t> token = op.body.Token("token");
  if (!token) {
    return op.BadInput(
        "\"token\" must be the fencing token of the drain as a decimal string, as lease.draining "
        "told it");
  }
  const std::optional<std::string> client_name = op.ClientName();
  if (!client_name) return;
  const std::optional<LeaseView> lease = op.Lease(control_);
  if (!lease) return;
  const lease::View& view = lease->view;
  if (!lease->may_act || view.token != *token) {
    return op.Fail("not_holder", "this process does not hold lease \"" + view.lease +
                                     "\" under token " + std::to_string(*token) + " any more");
  }
  if (view.state != lease::State::kDraining) {
    return op.Fail("not_draining", "lease \"" + view.lease + "\" is " +
                                       std::string(lease::StateName(view.state)) +
                                       "; say drained after lease.draining");
  }
  Answer answer(op.name, op.id, true);
  answer.json().Member("lease", view.lease).Key("token").Token(*token);
  if (client_name->empty()) {
    // Who says drained without having registered is not waited for, and told so by waiting_for.
    op.client.SetDrained(view.lease, *token);
  } else {
    const size_t named = registry_.DrainedByName(view.lease, *token, *client_name, op.client.uid());
    if (named == 0) {
      return op.Fail("not_registered", "no client of user id " + std::to_string(op.client.uid()) +
                                           " is registered as \"" + *client_name +
                                           "\" for lease \"" + view.lease + "\"");
    }
    answer.json().Member("name", *client_name).Key("clients").Uint(named);
  }
  registry_.Changed(view.lease);
  answer.json().Key("waiting_for").Uint(registry_.WaitingFor(view.lease, *token));
  op.client.Send(answer.Finish());
}

void SignalOps::StepDown(const Op& op) {
  StepDownAsk ask;
  const base::Status status = ReadStepDownAsk(op.body, {"op", "id", "lease"}, ask);
  if (!status.ok()) return op.BadInput(status.error().message);
  const std::optional<LeaseView> lease = op.Lease(control_);
  if (!lease) return;
  if (op.client.pending() >= SignalClient::kPendingMax) {
    return op.Fail("limit", std::to_string(SignalClient::kPendingMax) +
                                " step-downs of this client wait for their outcome already");
  }
  ask.lease = lease->view.lease;
  log_.Info("signal.step_down_asked", "a step-down was asked for over the signal socket",
            {{"lease", ask.lease},
             {"expected_node_id", ask.expected.node_id},
             {"expected_token", ask.expected.token},
             {"take_back", ask.take_back}});
  op.client.BeginPending();
  // The step-down goes on without its client; only the answer needs it.
  const base::Status started = control_.StepDown(
      ask, [weak = op.client.weak_from_this(), name = op.name, id = op.id, lease_name = ask.lease,
            node = control_.node()](const lease::StepDownDone& done) {
        const std::shared_ptr<SignalClient> client = weak.lock();
        if (client == nullptr) return;
        Answer answer(name, id, StepDownSucceeded(done.outcome));
        answer.json().Member("lease", lease_name);
        const std::string_view code = StepDownErrorCode(done.outcome);
        if (!code.empty()) answer.json().Member("error", code);
        lease::StepDownDone told = done;
        told.detail = StepDownSentence(done, lease_name);
        WriteStepDownOutcome(answer.json(), told, node);
        client->Send(answer.Finish());
        client->EndPending();
      });
  if (started.ok()) return;
  op.Fail(base::ErrorCodeName(started.error().code), started.error().message);
  op.client.EndPending();
}

void SignalOps::Status(const Op& op) {
  Answer answer(op.name, op.id, true);
  const NodeView node = control_.node();
  answer.json().Key("node");
  WriteNode(answer.json(), node);
  answer.json().Key("leases").BeginArray();
  for (const LeaseView& lease : control_.leases()) {
    WriteLease(answer.json(), lease, node, loop::Loop::Now());
  }
  answer.json().EndArray();
  op.client.Send(answer.Finish());
}

}  // namespace leasehold::admin
