// What SQS answers, which may be anybody's: 'j' or 'q' and an action in the first line, then the
// body. Asserted: an error is a sentence; a result with failures of ours behind it is read as both,
// in order, and is well-formed where the service's was; a batch that SQS was not asked has ours
// alone; each queue URL is changed, once, and nothing else is; what we answer ourselves is
// well-formed and says what it was told, whatever that is.
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "fuzz/fuzz_target.h"
#include "proto/json.h"
#include "proto/sqs_answer.h"
#include "proto/sqs_limits.h"
#include "proto/xml.h"

namespace leasehold::fuzz {
namespace {

namespace sqs = proto::sqs;
using sqs::Action;
using sqs::BatchResult;
using sqs::EntryFailure;
using sqs::Protocol;

class Texts : public proto::XmlVisitor {
 public:
  explicit Texts(std::string_view name) : name_(name) {}
  void OnStart(std::string_view name, size_t /*at*/) override {
    in_ = name == name_;
    if (in_) found.emplace_back();
  }
  void OnText(std::string_view piece) override {
    if (in_) found.back() += piece;
  }
  void OnEnd(std::string_view /*name*/, size_t /*at*/) override { in_ = false; }
  std::vector<std::string> found;

 private:
  std::string_view name_;
  bool in_ = false;
};

void CheckSentence(const base::Error& error) {
  CHECK(!error.message.empty() && error.message.size() < 1024, "no sentence, or without bound");
  for (const char c : error.message) CHECK(c >= ' ' && c < 0x7f, "a sentence shows raw bytes");
}

// As far as another parser can say: it takes no "\u0000" and no huge numbers.
bool IsSound(Protocol protocol, std::string_view body) {
  if (protocol == Protocol::kJson) return proto::Json::Parse(body).ok();
  Texts none("");
  return proto::ReadXml(body, none).ok();
}

void CheckSame(const EntryFailure& a, const EntryFailure& b) {
  CHECK(a.id == b.id && a.code == b.code && a.message == b.message &&
            a.sender_fault == b.sender_fault,
        "another failure");
}

void CheckReceived(Protocol protocol, std::string_view body) {
  const auto received = sqs::ParseReceived(protocol, body);
  if (!received) return CheckSentence(received.error());
  if (protocol != Protocol::kJson) return;
  const auto json = proto::Json::Parse(body);
  if (!json || !json->is_object()) return;
  const auto messages = json->Find("Messages");
  CHECK(received->size() == (messages ? messages->size() : 0), "messages more or less");
  for (size_t i = 0; i < received->size(); ++i) {
    const proto::Json message = *messages->At(i);
    CHECK(message.String("MessageId").value_or("") == (*received)[i].message_id, "another message");
    CHECK(message.String("ReceiptHandle").value_or("") == (*received)[i].receipt_handle,
          "another handle");
  }
}

void CheckMerge(Protocol protocol, Action action, std::string_view body,
                const std::vector<EntryFailure>& ours) {
  BatchResult theirs;
  if (!body.empty()) {
    const auto parsed = sqs::ParseBatchResult(protocol, body);
    if (!parsed) return CheckSentence(parsed.error());
    theirs = *parsed;
  }
  const auto merged = sqs::MergeBatchResult(protocol, action, body, ours, "id");
  if (!merged) return CheckSentence(merged.error());
  CHECK(IsSound(protocol, *merged) || (!body.empty() && !IsSound(protocol, body)),
        "merged, it is not well-formed");
  const auto both = sqs::ParseBatchResult(protocol, *merged);
  CHECK(both.ok(), "merged, it cannot be read");
  CHECK(both->successful.size() == theirs.successful.size(), "another success");
  for (size_t i = 0; i < theirs.successful.size(); ++i) {
    CHECK(both->successful[i].id == theirs.successful[i].id &&
              both->successful[i].message_id == theirs.successful[i].message_id,
          "another success");
  }
  CHECK(both->failed.size() == theirs.failed.size() + ours.size(), "failures more or less");
  for (size_t i = 0; i < both->failed.size(); ++i) {
    CheckSame(both->failed[i],
              i < theirs.failed.size() ? theirs.failed[i] : ours[i - theirs.failed.size()]);
  }
}

void CheckUrls(Protocol protocol, Action action, std::string_view body) {
  std::vector<std::string> found;
  const auto numbered = sqs::RewriteQueueUrls(protocol, action, body, [&](std::string_view url) {
    found.emplace_back(url);
    return "http://h/<&\">" + std::to_string(found.size());
  });
  if (!numbered) return CheckSentence(numbered.error());
  if (found.empty()) {
    CHECK(*numbered == body, "changed where there was nothing to change");
    return;
  }
  CHECK(IsSound(protocol, *numbered) || !IsSound(protocol, body), "no longer well-formed");
  size_t at = 0;
  const auto back = sqs::RewriteQueueUrls(protocol, action, *numbered, [&](std::string_view url) {
    CHECK(at < found.size(), "a URL more");
    CHECK(url == "http://h/<&\">" + std::to_string(at + 1), "a URL that was not changed");
    return found[at++];
  });
  CHECK(back.ok() && at == found.size(), "a URL less");
  at = 0;
  const auto again = sqs::RewriteQueueUrls(protocol, action, *back, [&](std::string_view url) {
    CHECK(at < found.size() && url == found[at], "there and back, it is another");
    return found[at++];
  });
  CHECK(again.ok() && *again == *back, "written as it is, it changes");
}

// Ours, made with any text.
void CheckOwn(Protocol protocol, Action action, const std::string& text) {
  CHECK(IsSound(protocol, sqs::EmptyReceive(protocol, "id").body), "an empty receive");
  const auto none = sqs::ParseReceived(protocol, sqs::EmptyReceive(protocol, "id").body);
  CHECK(none.ok() && none->empty(), "an empty receive with something in it");
  const std::string empty = sqs::EmptyAnswer(protocol, action, "id").body;
  CHECK(empty.empty() || IsSound(protocol, empty), "an empty answer");
  const sqs::Fault fault = sqs::MakeFault(protocol, sqs::FaultKind::kUnavailable, text);
  const sqs::Answer answer = sqs::FaultAnswer(fault, "id");
  CHECK(IsSound(protocol, answer.body) || text.find('\0') != std::string::npos, "a fault");
  if (!sqs::IsMessageText(text)) return;
  if (protocol == Protocol::kJson) {
    CHECK(proto::Json::Parse(answer.body)->String("message") == text, "another message");
  } else {
    Texts messages("Message");
    CHECK(proto::ReadXml(answer.body, messages).ok() && messages.found == std::vector{text},
          "another message");
  }
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  const size_t end = std::min(input.find('\n'), input.size());
  const std::string_view line = input.substr(0, end);
  const std::string body(input.substr(std::min(end + 1, input.size())));
  const Protocol protocol = line.starts_with('j') ? Protocol::kJson : Protocol::kQuery;
  const Action action = sqs::ActionOf(line.substr(std::min<size_t>(1, line.size())));
  const std::vector<EntryFailure> ours = {{"one", "ReceiptHandleIsInvalid", "a <\"&> b", true},
                                          {"two", "InternalError", "", false}};
  CheckReceived(protocol, body);
  CheckMerge(protocol, Action::kDeleteMessageBatch, body, ours);
  CheckMerge(protocol, Action::kDeleteMessageBatch, body, {});
  CheckMerge(protocol, Action::kDeleteMessageBatch, "", ours);
  CheckUrls(protocol, action, body);
  CheckOwn(protocol, action, body);
  return 0;
}
