#include "store/redis_record.h"

#include <charconv>
#include <limits>
#include <map>
#include <optional>

#include "base/text.h"

namespace leasehold::store {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::string_view kPeerPrefix = "peer:";  // redis_scripts.cc knows it too

std::string Escaped(std::string_view name) {
  std::string escaped;
  escaped.reserve(name.size());
  for (const char c : name) {
    if (c == ':') {
      escaped += "%3A";
    } else if (c == '%') {
      escaped += "%25";
    } else {
      escaped.push_back(c);
    }
  }
  return escaped;
}

Error NotARecord(std::string_view key, const std::string& what) {
  return {ErrorCode::kInvalid, "the Redis hash \"" + base::Printable(key) +
                                   "\" is not a lease record: " + what +
                                   "; it is left alone: repair or remove it by hand"};
}

// The fields of one hash on their way into a Record: each known one is taken out.
class Fields {
 public:
  Fields(std::string_view key, std::map<std::string, std::string> fields)
      : key_(key), fields_(std::move(fields)) {}

  Result<std::string> Take(const std::string& name) {
    auto node = fields_.extract(name);
    if (node.empty()) return NotARecord(key_, "it has no field " + name);
    return std::move(node.mapped());
  }

  Result<uint64_t> TakeUint(const std::string& name, uint64_t max) {
    const Result<std::string> text = Take(name);
    if (!text) return text.error();
    const Result<uint64_t> number = base::ParseUint64(*text);
    if (!number || *number > max) return Wrong(name, *text, "a whole number within its range");
    return *number;
  }

  Result<int64_t> TakeInt(const std::string& name) {
    const Result<std::string> text = Take(name);
    if (!text) return text.error();
    int64_t number = 0;
    const char* const end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, number);
    if (error != std::errc() || stop != end) return Wrong(name, *text, "a whole number");
    return number;
  }

  Error Wrong(const std::string& name, std::string_view value, std::string_view right) const {
    return NotARecord(key_, "its field " + name + " is \"" + base::Printable(value) +
                                "\" and must be " + std::string(right));
  }

  std::string TakeOptional(const std::string& name) {
    auto node = fields_.extract(name);
    return node.empty() ? "" : std::move(node.mapped());
  }

  // What is left: peers, and what we do not know.
  void TakeRest(lease::Record& record) {
    for (auto& [name, value] : fields_) {
      if (name.starts_with(kPeerPrefix)) {
        record.peers.emplace(name.substr(kPeerPrefix.size()), std::move(value));
      } else {
        record.unknown.emplace(name, std::move(value));
      }
    }
    fields_.clear();
  }

 private:
  std::string_view key_;
  std::map<std::string, std::string> fields_;
};

Status DecodeIdentity(Fields& fields, lease::Record& record) {
  Result<std::string> lease = fields.Take("lease");
  if (!lease) return lease.error();
  Result<std::string> node_id = fields.Take("node_id");
  if (!node_id) return node_id.error();
  Result<std::string> process_id = fields.Take("process_id");
  if (!process_id) return process_id.error();
  const Result<std::string> state = fields.Take("state");
  if (!state) return state.error();
  const std::optional<lease::RecordState> known = lease::ParseRecordState(*state);
  if (!known) return fields.Wrong("state", *state, "held, draining or released");
  record.lease = std::move(*lease);
  record.node_id = std::move(*node_id);
  record.process_id = std::move(*process_id);
  record.state = *known;
  return {};
}

Status DecodeNumbers(Fields& fields, lease::Record& record) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const Result<uint64_t> format =
      fields.TakeUint("format", std::numeric_limits<decltype(record.format)>::max());
  if (!format) return format.error();
  const Result<uint64_t> token = fields.TakeUint("token", kMax);
  if (!token) return token.error();
  const Result<uint64_t> beat = fields.TakeUint("beat", kMax);
  if (!beat) return beat.error();
  const Result<int64_t> ttl_ms = fields.TakeInt("ttl_ms");
  if (!ttl_ms) return ttl_ms.error();
  const Result<int64_t> acquired_at = fields.TakeInt("acquired_at_unix_ms");
  if (!acquired_at) return acquired_at.error();
  record.format = static_cast<uint32_t>(*format);
  record.token = *token;
  record.beat = *beat;
  record.ttl_ms = *ttl_ms;
  record.acquired_at_unix_ms = *acquired_at;
  return {};
}

}  // namespace

RedisNames NamesOf(std::string_view prefix, std::string_view lease) {
  const std::string start(prefix);
  const std::string name = Escaped(lease);
  return {start + ":lease:" + name, start + ":hint:" + name, start + ":probe:" + name};
}

RedisFields EncodeRecord(const lease::Record& record) {
  RedisFields fields = {
      {"format", std::to_string(record.format)},
      {"lease", record.lease},
      {"node_id", record.node_id},
      {"process_id", record.process_id},
      {"token", std::to_string(record.token)},
      {"beat", std::to_string(record.beat)},
      {"ttl_ms", std::to_string(record.ttl_ms)},
      {"state", std::string(lease::RecordStateName(record.state))},
      {"acquired_at_unix_ms", std::to_string(record.acquired_at_unix_ms)},
  };
  if (!record.former.empty()) fields.emplace_back("former", record.former);
  for (const auto& [gate, address] : record.peers) {
    fields.emplace_back(std::string(kPeerPrefix) + gate, address);
  }
  for (const auto& [name, value] : record.unknown) fields.emplace_back(name, value);
  return fields;
}

Result<lease::Record> DecodeRecord(std::string_view key, const proto::Reply& hash) {
  const std::vector<proto::Reply>& elements = hash.elements();
  if (!hash.is_array() || elements.size() % 2 != 0) {
    return NotARecord(key, "the server shows it as " + hash.Describe());
  }
  std::map<std::string, std::string> by_name;
  for (size_t i = 0; i < elements.size(); i += 2) {
    if (!elements[i].is_string() || !elements[i + 1].is_string()) {
      return NotARecord(key, "the server shows a field as " + elements[i + 1].Describe());
    }
    // Which of the two the script compares is not what a map here would keep.
    if (!by_name.emplace(elements[i].text(), elements[i + 1].text()).second) {
      return NotARecord(key,
                        "the server shows field " + base::Printable(elements[i].text()) + " twice");
    }
  }
  Fields fields(key, std::move(by_name));
  lease::Record record;
  if (Status status = DecodeIdentity(fields, record); !status) return status.error();
  if (Status status = DecodeNumbers(fields, record); !status) return status.error();
  record.former = fields.TakeOptional("former");
  fields.TakeRest(record);
  return record;
}

}  // namespace leasehold::store
