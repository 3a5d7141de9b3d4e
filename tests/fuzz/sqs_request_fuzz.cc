// What a client asks of SQS, in either protocol. The input is a request as text: "METHOD
// path?query", the content type, X-Amz-Target, then the body. Asserted: an error has a status of
// the client's, and an answer in the client's protocol that can be read; what was read of JSON is
// what another parser reads; the same question as it goes on is read the same, changed in exactly
// what was to change; a part of an entry is an entry's, or nobody's; no signature of the client
// goes on.
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/text.h"
#include "fuzz/fuzz_target.h"
#include "proto/json.h"
#include "proto/sqs.h"
#include "proto/sqs_url.h"
#include "proto/xml.h"

namespace leasehold::fuzz {
namespace {

namespace sqs = proto::sqs;
using sqs::ClientRequest;
using sqs::Entry;
using sqs::Rewrite;

class Nobody : public proto::XmlVisitor {
 public:
  void OnStart(std::string_view /*name*/, size_t /*at*/) override {}
  void OnText(std::string_view /*piece*/) override {}
  void OnEnd(std::string_view /*name*/, size_t /*at*/) override {}
};

struct Told {
  std::string method;
  std::string path;
  std::string query;
  std::string content_type;
  std::string target;
  std::string body;

  sqs::RequestText Text() const { return {method, path, query, content_type, target, body}; }
};

std::string Line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  const std::string line(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

Told Read(std::string_view input) {
  Told told;
  const std::string line = Line(input);
  told.content_type = Line(input);
  told.target = Line(input);
  told.body = std::string(input);
  const size_t blank = std::min(line.find(' '), line.size());
  told.method = line.substr(0, blank);
  const std::string target = line.substr(std::min(blank + 1, line.size()));
  const size_t mark = std::min(target.find('?'), target.size());
  told.path = target.substr(0, mark);
  told.query = target.substr(std::min(mark + 1, target.size()));
  return told;
}

void CheckFault(const sqs::Fault& fault) {
  CHECK(fault.status >= 400 && fault.status < 500 && fault.sender, "whose fault is it?");
  CHECK(!fault.code.empty() && !fault.shape.empty() && !fault.message.empty(),
        "which fault is it?");
  const sqs::Answer answer = sqs::FaultAnswer(fault, "id");
  CHECK(answer.status == fault.status, "another status");
  if (fault.protocol == sqs::Protocol::kJson) {
    const auto json = proto::Json::Parse(answer.body);
    CHECK(json.ok() && json->String("__type") == fault.shape, "an error that no SDK can read");
  } else {
    Nobody nobody;
    CHECK(proto::ReadXml(answer.body, nobody).ok(), "an error that no SDK can read");
    CHECK(answer.body.find("<Code>" + fault.code + "</Code>") != std::string::npos, "which?");
  }
}

bool Same(const Entry& a, const Entry& b) {
  return a.id == b.id && a.receipt_handle == b.receipt_handle &&
         a.visibility_timeout == b.visibility_timeout;
}

// Another parser's reading, where it takes the text (it does not take "\u0000" and huge numbers).
void CheckJson(const Told& told, const ClientRequest& request) {
  proto::JsonLimits limits;
  limits.depth_max = 16;
  const auto json = proto::Json::Parse(told.body, limits);
  if (!json || !json->is_object()) return;
  CHECK(json->String("QueueUrl").value_or("") == request.queue_url, "another queue");
  CHECK(json->String("QueueName").value_or("") == request.queue_name, "another name");
  const auto number = [&](std::string_view name, const std::optional<int>& read) {
    CHECK(json->Int(name).value_or(-1) == read.value_or(-1), "another number");
  };
  number("WaitTimeSeconds", request.wait_seconds);
  number("MaxNumberOfMessages", request.max_messages);
  number("VisibilityTimeout", request.visibility_timeout);
  if (!request.batch) return;
  const auto entries = json->Find("Entries");
  CHECK(request.entries.size() == (entries ? entries->size() : 0), "entries more or less");
  for (size_t i = 0; i < request.entries.size(); ++i) {
    const proto::Json entry = *entries->At(i);
    CHECK(entry.String("Id").value_or("") == request.entries[i].id, "another entry");
    if (sqs::KindOf(request.action) != sqs::Kind::kAcknowledge) continue;
    CHECK(entry.String("ReceiptHandle").value_or("") == request.entries[i].receipt_handle,
          "another handle");
  }
}

// Names that SQS might take for a part of an entry, which we did not.
void CheckQuery(const ClientRequest& request) {
  for (const proto::FormField& field : request.source.fields) {
    CHECK(!field.name.starts_with("X-Amz-") && field.name != "Signature", "a signature goes on");
  }
  size_t handles = 0;
  const std::string prefix = request.action_name + "RequestEntry.";
  for (const proto::FormField& field : request.source.fields) {
    if (!field.name.starts_with(prefix)) continue;
    const size_t dot = std::min(field.name.find('.', prefix.size()), field.name.size());
    if (field.name.substr(dot) == ".ReceiptHandle") ++handles;
  }
  if (request.batch && sqs::KindOf(request.action) == sqs::Kind::kAcknowledge) {
    CHECK(handles <= request.entries.size(), "a handle goes on that nobody looked at");
  }
}

ClientRequest Again(const ClientRequest& request, const Rewrite& rewrite) {
  const sqs::Outgoing outgoing = sqs::WriteRequest(request, rewrite);
  const sqs::Outgoing moved = sqs::WriteRequest(ClientRequest(request), rewrite);
  CHECK(outgoing.path == moved.path && outgoing.headers == moved.headers &&
            outgoing.body == moved.body,
        "moved, it is another");
  sqs::RequestText text;
  text.method = "POST";
  text.path = outgoing.path;
  for (const auto& [name, value] : outgoing.headers) {
    CHECK(name == "Content-Type" || name == "X-Amz-Target", "another header");
    (name == "Content-Type" ? text.content_type : text.target) = value;
  }
  text.body = outgoing.body;
  auto again = sqs::ParseRequest(std::move(text));
  CHECK(std::holds_alternative<ClientRequest>(again), "as it goes on, it cannot be read");
  return std::get<ClientRequest>(std::move(again));
}

void CheckSame(const ClientRequest& a, const ClientRequest& b) {
  CHECK(a.protocol == b.protocol && a.action_name == b.action_name && a.action == b.action,
        "another action");
  CHECK(a.queue_name == b.queue_name && a.max_messages == b.max_messages &&
            a.visibility_timeout == b.visibility_timeout && a.batch == b.batch,
        "another parameter");
}

void CheckEntries(const ClientRequest& request, const ClientRequest& again,
                  const std::vector<bool>& keep) {
  size_t at = 0;
  for (size_t i = 0; i < request.entries.size(); ++i) {
    if (!keep.empty() && !keep[i]) continue;
    CHECK(at < again.entries.size() && Same(request.entries[i], again.entries[at]),
          "another entry, or in another order");
    ++at;
  }
  CHECK(at == again.entries.size(), "an entry that nobody asked for");
}

void CheckRewrites(const ClientRequest& request, uint64_t draw) {
  const ClientRequest as_it_is = Again(request, {});
  CheckSame(request, as_it_is);
  CheckEntries(request, as_it_is, {});
  CHECK(as_it_is.queue_url == request.queue_url, "another queue");
  CHECK(as_it_is.wait_seconds == request.wait_seconds, "another wait");

  Rewrite rewrite;
  if (!request.queue_url.empty()) rewrite.queue_url = "https://h:1/2/q";
  if (request.action == sqs::Action::kReceiveMessage) rewrite.wait_seconds = 7;
  if (request.batch && !request.entries.empty()) {
    for (size_t i = 0; i < request.entries.size(); ++i) rewrite.keep.push_back(draw >> i % 64 & 1);
    rewrite.keep[draw % request.entries.size()] = true;
  }
  const ClientRequest changed = Again(request, rewrite);
  CheckSame(request, changed);
  CheckEntries(request, changed, rewrite.keep);
  if (rewrite.queue_url) {
    const auto queue = sqs::ParseQueueUrl(changed.queue_url);
    CHECK(queue && queue->path() == "/2/q", "not the new queue");
  }
  CHECK(changed.wait_seconds == (rewrite.wait_seconds ? 7 : request.wait_seconds), "another wait");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  const Told told = Read(input);
  const auto parsed = sqs::ParseRequest(told.Text());
  if (const auto* fault = std::get_if<sqs::Fault>(&parsed)) {
    CheckFault(*fault);
    return 0;
  }
  const auto& request = std::get<ClientRequest>(parsed);
  CHECK(request.action == sqs::ActionOf(request.action_name), "another action");
  CHECK(!request.action_name.empty() && request.action_name.size() <= 64, "an action of no name");
  if (request.protocol == sqs::Protocol::kJson) {
    CheckJson(told, request);
  } else {
    CheckQuery(request);
  }
  CheckRewrites(request, Hash(input));
  return 0;
}
