// AWS Query: everything in a form, in the body or behind the '?'; the queue's path may stand for
// it.
#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "proto/sqs_parse.h"
#include "proto/sqs_url.h"

namespace leasehold::proto::sqs {
namespace {

Fault MakeQueryFault(FaultKind kind, std::string message) {
  return MakeFault(Protocol::kQuery, kind, std::move(message));
}

// What a client signed its request with: for us it means nothing, and SQS would check it.
bool IsSignature(std::string_view name) {
  constexpr std::string_view kNames[] = {"AWSAccessKeyId",  "Expires",   "SecurityToken",
                                         "Signature",       "Timestamp", "SignatureMethod",
                                         "SignatureVersion"};
  constexpr std::string_view kPrefix = "X-Amz-";
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         base::EqualsIgnoreCase(name.substr(0, kPrefix.size()), kPrefix);
}

bool IsForm(std::string_view content_type) {
  constexpr std::string_view kType = "application/x-www-form-urlencoded";
  return content_type.empty() ||
         base::EqualsIgnoreCase(content_type.substr(0, kType.size()), kType);
}

std::optional<Fault> ReadFields(const RequestText& text, std::vector<FormField>& fields) {
  for (const std::string_view part :
       {text.query, IsForm(text.content_type) ? std::string_view(text.body) : ""}) {
    auto some = ParseForm(part, kFormFieldsMax - fields.size());
    if (!some) return MakeQueryFault(FaultKind::kMalformedJson, some.error().message);
    std::move(some->begin(), some->end(), std::back_inserter(fields));
  }
  std::erase_if(fields, [](const FormField& field) { return IsSignature(field.name); });
  std::vector<std::string_view> names;
  names.reserve(fields.size());
  for (const FormField& field : fields) names.push_back(field.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    return MakeQueryFault(FaultKind::kInvalidParameter,
                          "The parameter " + base::Printable(*twice) + " stands twice.");
  }
  return std::nullopt;
}

const std::string* Find(const std::vector<FormField>& fields, std::string_view name) {
  for (const FormField& field : fields) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

std::string Text(const std::vector<FormField>& fields, std::string_view name) {
  const std::string* value = Find(fields, name);
  return value == nullptr ? std::string() : *value;
}

std::optional<Fault> ReadInt(std::string_view name, const std::string* value,
                             std::optional<int>& out) {
  if (value == nullptr || value->empty()) return std::nullopt;
  int number = 0;
  const char* end = value->data() + value->size();
  const auto result = std::from_chars(value->data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) {
    return MakeQueryFault(FaultKind::kInvalidParameter,
                          "Value " + base::Printable(*value) + " for parameter " +
                              std::string(name) + " is invalid. Reason: Must be an integer.");
  }
  out = number;
  return std::nullopt;
}

std::optional<Fault> ReadBatch(ClientRequest& request) {
  const bool acknowledges = KindOf(request.action) == Kind::kAcknowledge;
  const std::string prefix = EntryPrefix(request);
  std::vector<size_t> numbers;  // of the entries, as the client counted them
  for (const FormField& field : request.source.fields) {
    const std::optional<EntryField> part = ParseEntryField(prefix, field.name);
    if (!part && field.name.starts_with(prefix + ".")) {
      // ".01.Id" may be an entry's for SQS; as nobody's it would go on unseen.
      return MakeQueryFault(FaultKind::kInvalidParameter,
                            "The parameter " + base::Printable(field.name) +
                                " is not valid. Reason: Entries are counted 1, 2, ...: " + prefix +
                                ".1.Id.");
    }
    if (!part) continue;
    const auto known = std::find(numbers.begin(), numbers.end(), part->number);
    const auto index = static_cast<size_t>(known - numbers.begin());
    if (known == numbers.end()) {
      numbers.push_back(part->number);
      request.entries.emplace_back();
    }
    Entry& entry = request.entries[index];
    if (part->rest == "Id") entry.id = field.value;
    if (!acknowledges) continue;
    if (part->rest == "ReceiptHandle") entry.receipt_handle = field.value;
    if (part->rest != "VisibilityTimeout") continue;
    auto fault = ReadInt("VisibilityTimeout", &field.value, entry.visibility_timeout);
    if (fault) return fault;
  }
  return std::nullopt;
}

std::optional<Fault> ReadNumbers(ClientRequest& request) {
  const std::pair<std::string_view, std::optional<int>*> numbers[] = {
      {"WaitTimeSeconds", &request.wait_seconds},
      {"MaxNumberOfMessages", &request.max_messages},
      {"VisibilityTimeout", &request.visibility_timeout}};
  for (const auto& [name, out] : numbers) {
    auto fault = ReadInt(name, Find(request.source.fields, name), *out);
    if (fault) return fault;
  }
  return std::nullopt;
}

}  // namespace

std::optional<EntryField> ParseEntryField(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (!name.starts_with('.')) return std::nullopt;
  const size_t dot = name.find('.', 1);
  if (dot == std::string_view::npos) return std::nullopt;
  const base::Result<uint64_t> number = base::ParseUint64(name.substr(1, dot - 1));
  if (!number) return std::nullopt;
  return EntryField{*number, name.substr(dot + 1)};
}

std::optional<Fault> ParseQueryRequest(const RequestText& text, ClientRequest& request) {
  std::vector<FormField>& fields = request.source.fields;
  if (std::optional<Fault> fault = ReadFields(text, fields)) return fault;
  if (std::optional<Fault> fault = SetAction(request, Text(fields, "Action"))) return fault;
  if (std::optional<Fault> fault = ReadNumbers(request)) return fault;
  request.queue_name = Text(fields, "QueueName");
  request.queue_url = Text(fields, "QueueUrl");
  if (ParseQueueUrl(text.path)) {
    request.source.path = text.path;
    if (request.queue_url.empty()) request.queue_url = text.path;
  }
  if (request.batch) return ReadBatch(request);
  if (KindOf(request.action) == Kind::kAcknowledge) {
    request.entries.push_back({"", Text(fields, "ReceiptHandle"), request.visibility_timeout});
  }
  return std::nullopt;
}

}  // namespace leasehold::proto::sqs
