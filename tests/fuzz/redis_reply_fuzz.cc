// What the redis adapter makes of a server's answers, which may be anybody's. The input is a stream
// of RESP replies; each is taken for the answer of every command we send. Asserted: each gets an
// outcome; applied is exactly the script's yes and a conflict exactly its no (read here once more,
// plainly); refused, which stops a caller from trying, is only what is known to repeat; absent is
// only an empty hash; a record comes back as it went, and its version is made of the very bytes
// that the script compares; an error is a printable sentence.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text.h"
#include "fuzz/fuzz_target.h"
#include "store/redis_answer.h"
#include "store/redis_policy.h"
#include "store/redis_record.h"
#include "store/redis_scripts.h"

namespace leasehold::fuzz {
namespace {

using proto::Reply;
using store::CasResult;
using store::ReadResult;

constexpr std::string_view kServer = "redis at h:6379/0";
constexpr std::string_view kKey = "leasehold:lease:orders";

void CheckSentence(const std::string& error) {
  CHECK(!error.empty(), "a failure without a sentence");
  CHECK(error.size() < 2048, "a sentence without bound");
  for (const char c : error) CHECK(c >= ' ' && c < 0x7f, "a sentence shows raw bytes");
}

// The server's words for what did not happen and repeats until repaired.
bool NamesALastingTrouble(std::string_view error) {
  constexpr std::array<std::string_view, 10> kWords = {
      "OOM",    "MISCONF",   "NOPERM", "WRONGPASS", "NOAUTH",
      "DENIED", "WRONGTYPE", "MOVED",  "CROSSSLOT", "The user executing the script can't"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return error.find(word) != std::string_view::npos;
  });
}

bool IsString(const Reply& reply, std::string_view text) {
  return reply.kind() == Reply::Kind::kString && reply.text() == text;
}

Reply HashOf(const lease::Record& record) {
  std::vector<Reply> elements;
  for (const auto& [name, value] : store::EncodeRecord(record)) {
    elements.push_back(Reply::Text(Reply::Kind::kString, name));
    elements.push_back(Reply::Text(Reply::Kind::kString, value));
  }
  return Reply::Array(std::move(elements));
}

// A field of a hash as the script sees it: where it stands twice, the last one counts.
std::string FieldOf(const Reply& hash, std::string_view name) {
  const std::vector<Reply>& elements = hash.elements();
  for (size_t i = elements.size(); i >= 2; i -= 2) {
    if (elements[i - 2].text() == name) return elements[i - 1].text();
  }
  return "";
}

void CheckRecord(const lease::Record& record, const lease::Version& version, const Reply& hash) {
  CHECK(version == FieldOf(hash, "process_id") + "/" + FieldOf(hash, "token") + "/" +
                       FieldOf(hash, "beat"),
        "the version is not the one that the script compares");
  const base::Result<lease::Record> again = store::DecodeRecord(kKey, HashOf(record));
  CHECK(again.ok() && *again == record, "a record does not come back as it went");
  if (lease::ValidateRecord(record).ok()) {
    CHECK(record.format == lease::kRecordFormat, "a record of another format is acted on");
    CHECK(record.ttl() >= base::Duration::Millis(500), "a record's TTL is too short");
    CHECK(!record.process_id.empty() && !record.node_id.empty(), "a record of nobody");
  }
}

void CheckRead(const Reply& reply) {
  const ReadResult result = store::JudgeRead(kServer, kKey, {reply, {}});
  const bool is_array = reply.is_array();
  switch (result.outcome) {
    case ReadResult::Outcome::kAbsent:
      CHECK(is_array && reply.elements().empty(), "absent without an empty hash");
      return;
    case ReadResult::Outcome::kRecord:
      CHECK(is_array, "a record out of no hash");
      return CheckRecord(result.record, result.version, reply);
    case ReadResult::Outcome::kRefused:
      CHECK(is_array || (reply.is_error() && NamesALastingTrouble(reply.text())),
            "a read was refused for what may pass");
      break;
    case ReadResult::Outcome::kAmbiguous: CHECK(!is_array, "a hash is ambiguous"); break;
  }
  CheckSentence(result.error);
}

bool IsYes(const Reply& reply) {
  return reply.is_array() && reply.elements().size() == 2 &&
         IsString(reply.elements()[0], "applied") && reply.elements()[1].is_string();
}

bool IsNo(const Reply& reply) {
  return reply.is_array() && reply.elements().size() == 3 &&
         IsString(reply.elements()[0], "conflict") && reply.elements()[1].is_array() &&
         reply.elements()[2].is_string();
}

void CheckCas(const Reply& reply) {
  const CasResult result = store::JudgeCas(kServer, kKey, "p1/3/8", {reply, {}});
  CHECK((result.outcome == CasResult::Outcome::kApplied) == IsYes(reply), "applied, or not?");
  switch (result.outcome) {
    case CasResult::Outcome::kApplied: CHECK(result.version == "p1/3/8", "whose version?"); return;
    case CasResult::Outcome::kConflict: {
      CHECK(IsNo(reply), "a conflict that the script did not tell");
      const Reply& hash = reply.elements()[1];
      CHECK(result.absent == hash.elements().empty(), "absent without an empty hash");
      CHECK(result.absent != result.record.has_value(), "neither absent nor there");
      if (result.record) CheckRecord(*result.record, result.version, hash);
      return;
    }
    case CasResult::Outcome::kRefused:
      CHECK(IsNo(reply) || (reply.is_error() && NamesALastingTrouble(reply.text())),
            "a write was refused for what may pass, or may have happened");
      break;
    case CasResult::Outcome::kAmbiguous: CHECK(!IsNo(reply), "the script's no is ambiguous"); break;
  }
  CHECK(!result.absent && !result.record && result.version.empty(), "a failure shows a record");
  CheckSentence(result.error);
}

void CheckReplicas(const Reply& reply) {
  CasResult applied;
  applied.outcome = CasResult::Outcome::kApplied;
  const CasResult result = store::JudgeReplicas(kServer, 2, std::move(applied), {reply, {}});
  const bool enough = reply.kind() == Reply::Kind::kInteger && reply.integer() >= 2;
  CHECK(result.outcome == (enough ? CasResult::Outcome::kApplied : CasResult::Outcome::kAmbiguous),
        "a write counts without its replicas, or is denied");
  if (!enough) CheckSentence(result.error);
}

void CheckPolicy(const Reply& reply) {
  using Verdict = store::RedisPolicy::Verdict;
  const store::RedisPolicy policy = store::JudgePolicy(kServer, reply);
  if (policy.verdict != Verdict::kSafe) return CheckSentence(policy.sentence);
  CHECK(!reply.is_error(), "an error says that the policy is safe");
  CHECK(reply.text().find("maxmemory_policy:") != std::string::npos, "safe without a word of it");
}

// The script's digest is taken only if it looks like one: it goes into the next command.
void CheckLoaded(const Reply& reply) {
  store::RedisScript script = store::ReadScript();
  script.OnLoaded(reply);
  CHECK(!script.loaded() || (reply.is_string() && reply.text().size() == 40), "no digest");
}

void CheckNames(std::string_view input) {
  const size_t cut = input.size() / 2;
  const std::string name(input.substr(0, cut));
  const std::string other(input.substr(cut));
  const bool meet = store::NamesOf("a", name).key == store::NamesOf("a", other).key;
  CHECK(meet == (name == other), "two leases share a key");
  // Whatever the first name holds, a prefix cannot be made out of it.
  CHECK(store::NamesOf("a", name).key != store::NamesOf("a:lease:" + name, other).key,
        "two teams share a key");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  CheckNames(input);
  leasehold::proto::RespReader reader;
  if (!reader.Feed(input).ok()) return 0;
  for (;;) {
    const auto next = reader.Next();
    if (!next.ok() || !next->has_value()) return 0;
    const leasehold::proto::Reply& reply = **next;
    CheckRead(reply);
    CheckCas(reply);
    CheckReplicas(reply);
    CheckPolicy(reply);
    CheckLoaded(reply);
  }
}
