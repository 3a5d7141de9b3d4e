// A client's request as it goes on to SQS.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/json_writer.h"
#include "proto/sqs.h"
#include "proto/sqs_parse.h"
#include "proto/sqs_url.h"

namespace leasehold::proto::sqs {
namespace {

using Parts = std::vector<std::pair<Span, std::string>>;

bool Keeps(const Rewrite& rewrite, size_t index) {
  return rewrite.keep.empty() || rewrite.keep[index];
}

bool KeepsAll(const Rewrite& rewrite) {
  return std::all_of(rewrite.keep.begin(), rewrite.keep.end(), [](bool keep) { return keep; });
}

// One member's value; where there is none, a member more behind the opening brace.
void Replace(std::string_view body, std::optional<Span> where, std::string_view key,
             std::string value, Parts& parts) {
  if (where) {
    parts.emplace_back(*where, std::move(value));
    return;
  }
  const size_t inside = body.find('{') + 1;
  const bool alone = body.find_first_not_of(" \t\r\n", inside) == body.rfind('}');
  const bool second = !parts.empty() && parts.back().first.begin == inside;
  parts.emplace_back(Span{inside, inside}, (alone && second ? "," : "") + base::JsonQuote(key) +
                                               ":" + std::move(value) + (alone ? "" : ","));
}

std::string KeptEntries(const ClientRequest::Source& source, const Rewrite& rewrite) {
  std::string kept = "[";
  for (size_t i = 0; i < source.entry_values.size(); ++i) {
    if (!Keeps(rewrite, i)) continue;
    if (kept.size() > 1) kept += ',';
    kept += source.entry_values[i].Of(source.body);
  }
  return kept + "]";
}

std::string WriteJson(ClientRequest::Source& source, const Rewrite& rewrite) {
  Parts parts;
  if (rewrite.queue_url) {
    Replace(source.body, source.queue_url, "QueueUrl", base::JsonQuote(*rewrite.queue_url), parts);
  }
  if (rewrite.wait_seconds) {
    Replace(source.body, source.wait_seconds, "WaitTimeSeconds",
            std::to_string(*rewrite.wait_seconds), parts);
  }
  if (!KeepsAll(rewrite) && source.entries) {
    parts.emplace_back(*source.entries, KeptEntries(source, rewrite));
  }
  if (parts.empty()) return std::move(source.body);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  return Splice(source.body, parts);
}

void SetField(std::vector<FormField>& fields, std::string_view name, std::string value) {
  const auto same = [&](const FormField& field) { return field.name == name; };
  const auto field = std::find_if(fields.begin(), fields.end(), same);
  if (field != fields.end()) {
    field->value = std::move(value);
  } else {
    fields.push_back({std::string(name), std::move(value)});
  }
}

// Entries that stay are counted anew from 1, in their order: a gap would be for SQS to interpret.
void DropEntries(const ClientRequest& request, const Rewrite& rewrite,
                 std::vector<FormField>& fields) {
  const std::string prefix = EntryPrefix(request);
  std::vector<size_t> numbers;
  std::vector<FormField> kept;
  for (FormField& field : fields) {
    const std::optional<EntryField> part = ParseEntryField(prefix, field.name);
    if (part) {
      const auto known = std::find(numbers.begin(), numbers.end(), part->number);
      const auto index = static_cast<size_t>(known - numbers.begin());
      if (known == numbers.end()) numbers.push_back(part->number);
      if (!Keeps(rewrite, index)) continue;
      size_t number = 1;
      for (size_t i = 0; i < index; ++i) number += Keeps(rewrite, i) ? 1 : 0;
      field.name = prefix + "." + std::to_string(number) + "." + std::string(part->rest);
    }
    kept.push_back(std::move(field));
  }
  fields = std::move(kept);
}

void WriteQuery(const ClientRequest& request, std::vector<FormField> fields, const Rewrite& rewrite,
                std::string_view base_path, Outgoing& outgoing) {
  if (!request.source.path.empty()) outgoing.path = request.source.path;
  if (rewrite.queue_url) {
    const std::optional<QueueUrl> queue = ParseQueueUrl(*rewrite.queue_url, base_path);
    if (!request.source.path.empty()) outgoing.path = queue ? queue->path() : "/";
    // Also where the path was enough for the client: SQS takes both, some emulators only this.
    SetField(fields, "QueueUrl", *rewrite.queue_url);
  }
  if (rewrite.wait_seconds) {
    SetField(fields, "WaitTimeSeconds", std::to_string(*rewrite.wait_seconds));
  }
  if (!KeepsAll(rewrite)) DropEntries(request, rewrite, fields);
  outgoing.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
  outgoing.body = WriteForm(fields);
}

}  // namespace

Outgoing WriteRequest(ClientRequest&& request, const Rewrite& rewrite, std::string_view base_path) {
  CHECK(rewrite.keep.empty() || (request.batch && rewrite.keep.size() == request.entries.size()),
        "a rewrite decides about every entry of a batch");
  Outgoing outgoing;
  if (request.protocol == Protocol::kQuery) {
    std::vector<FormField> fields = std::move(request.source.fields);
    WriteQuery(request, std::move(fields), rewrite, base_path, outgoing);
    return outgoing;
  }
  outgoing.headers.emplace_back("Content-Type", "application/x-amz-json-1.0");
  outgoing.headers.emplace_back("X-Amz-Target", std::string(kTargetPrefix) + request.action_name);
  outgoing.body = WriteJson(request.source, rewrite);
  return outgoing;
}

Outgoing WriteRequest(const ClientRequest& request, const Rewrite& rewrite,
                      std::string_view base_path) {
  return WriteRequest(ClientRequest(request), rewrite, base_path);
}

}  // namespace leasehold::proto::sqs
