// AWS JSON 1.0: the action in a header, one object as the body.
#include <limits>
#include <utility>

#include "base/text.h"
#include "proto/json.h"
#include "proto/sqs_parse.h"

namespace leasehold::proto::sqs {
namespace {

Fault Malformed(std::string why) {
  return MakeFault(Protocol::kJson, FaultKind::kMalformedJson, std::move(why));
}

// Reads the members of one object; the first that is of the wrong type stays as the fault.
class Fields {
 public:
  Fields(std::string_view body, const std::vector<JsonMember>& members)
      : body_(body), members_(members) {}

  std::optional<Span> Place(std::string_view key) const {
    for (const JsonMember& member : members_) {
      if (member.key == key) return member.value;
    }
    return std::nullopt;
  }
  std::string Text(std::string_view key) {
    const JsonMember* member = FindMember(body_, members_, key);
    if (member == nullptr) return {};
    std::optional<std::string> text = JsonText(body_, member->value);
    if (!text) WrongType(key, "a text");
    return text ? *std::move(text) : std::string();
  }
  std::optional<int> Int(std::string_view key) {
    const JsonMember* member = FindMember(body_, members_, key);
    if (member == nullptr) return std::nullopt;
    const base::Result<Json> json = Json::Parse(member->value.Of(body_));
    const std::optional<int64_t> value = json ? json->AsInt() : std::nullopt;
    using Range = std::numeric_limits<int>;
    if (value && *value >= Range::min() && *value <= Range::max()) return static_cast<int>(*value);
    WrongType(key, "an integer");
    return std::nullopt;
  }

  const std::optional<Fault>& fault() const { return fault_; }

 private:
  void WrongType(std::string_view key, std::string_view right) {
    if (!fault_) fault_ = Malformed(std::string(key) + " must be " + std::string(right) + ".");
  }

  std::string_view body_;
  const std::vector<JsonMember>& members_;
  std::optional<Fault> fault_;
};

std::optional<Fault> ReadEntry(std::string_view body, Span where, bool acknowledges, Entry& entry) {
  const auto members = JsonMembers(body, where);
  if (!members) return Malformed("Entries: " + members.error().message);
  Fields fields(body, *members);
  entry.id = fields.Text("Id");
  if (acknowledges) {
    entry.receipt_handle = fields.Text("ReceiptHandle");
    entry.visibility_timeout = fields.Int("VisibilityTimeout");
  }
  return fields.fault();
}

std::optional<Fault> ReadBatch(ClientRequest& request) {
  ClientRequest::Source& source = request.source;
  if (!source.entries || source.entries->Of(source.body) == "null") return std::nullopt;
  auto elements = JsonElements(source.body, *source.entries);
  if (!elements) return Malformed("Entries must be an array: " + elements.error().message);
  source.entry_values = std::move(*elements);
  const bool acknowledges = KindOf(request.action) == Kind::kAcknowledge;
  for (const Span element : source.entry_values) {
    Entry& entry = request.entries.emplace_back();
    std::optional<Fault> fault = ReadEntry(source.body, element, acknowledges, entry);
    if (fault) return fault;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fault> ParseJsonRequest(RequestText& text, ClientRequest& request) {
  std::string_view target = base::Trim(text.target);
  if (!target.empty() && !target.starts_with(kTargetPrefix)) {
    return MakeFault(Protocol::kJson, FaultKind::kInvalidAction,
                     "The target " + base::Printable(target, 80) +
                         " is not valid: " + std::string(kTargetPrefix) + "<action> is.");
  }
  if (!target.empty()) target.remove_prefix(kTargetPrefix.size());
  if (std::optional<Fault> fault = SetAction(request, target)) return fault;

  ClientRequest::Source& source = request.source;
  source.body = std::move(text.body);
  if (base::Trim(source.body).empty()) source.body = "{}";  // as SDKs mean it for ListQueues
  const auto members = JsonMembers(source.body, {0, source.body.size()});
  if (!members) return Malformed("The body must be an object: " + members.error().message);
  Fields fields(source.body, *members);
  source.queue_url = fields.Place("QueueUrl");
  source.wait_seconds = fields.Place("WaitTimeSeconds");
  request.queue_url = fields.Text("QueueUrl");
  request.queue_name = fields.Text("QueueName");
  request.wait_seconds = fields.Int("WaitTimeSeconds");
  request.max_messages = fields.Int("MaxNumberOfMessages");
  request.visibility_timeout = fields.Int("VisibilityTimeout");
  if (request.batch) {
    source.entries = fields.Place("Entries");
    if (std::optional<Fault> fault = ReadBatch(request)) return fault;
  } else if (KindOf(request.action) == Kind::kAcknowledge) {
    request.entries.push_back({"", fields.Text("ReceiptHandle"), request.visibility_timeout});
  }
  return fields.fault();
}

}  // namespace leasehold::proto::sqs
