#include "proto/resp.h"

#include <hiredis.h>

#include <utility>

#include "base/text.h"

namespace leasehold::proto {
namespace {

using base::Error;
using base::ErrorCode;

// What the reader builds; turned into an immutable Reply when complete. The root is owned by the
// hiredis reader until then, the rest by their parents.
struct Node {
  Reply::Kind kind = Reply::Kind::kNil;
  int64_t integer = 0;
  std::string text;
  std::vector<std::unique_ptr<Node>> elements;
};

// What the hiredis callbacks may use up for one reply.
struct Budget {
  RespLimits limits;
  size_t elements_left = 0;
  std::string why;  // the reason a callback returned null
};

Budget& BudgetOf(const redisReadTask* task) { return *static_cast<Budget*>(task->privdata); }

size_t DepthOf(const redisReadTask* task) {
  size_t depth = 0;
  for (const redisReadTask* up = task->parent; up != nullptr; up = up->parent) ++depth;
  return depth;
}

// Hands the node to its parent, or to the reader for a root. Null (the reader then reports an
// error) when the parent has no such element: hiredis 0.14 cuts element counts to 32 bits, so a
// count of 2^32 makes an empty array that is given an element.
void* Place(const redisReadTask* task, std::unique_ptr<Node> node) {
  if (task->parent == nullptr) return node.release();
  auto* parent = static_cast<Node*>(task->parent->obj);
  const auto index = static_cast<size_t>(task->idx);
  if (parent == nullptr || index >= parent->elements.size()) {
    BudgetOf(task).why = "an array has more elements than it announced";
    return nullptr;
  }
  parent->elements[index] = std::move(node);
  return parent->elements[index].get();
}

void* NewText(const redisReadTask* task, const char* bytes, size_t size) {
  auto node = std::make_unique<Node>();
  switch (task->type) {
    case REDIS_REPLY_STRING: node->kind = Reply::Kind::kString; break;
    case REDIS_REPLY_STATUS: node->kind = Reply::Kind::kStatus; break;
    case REDIS_REPLY_ERROR: node->kind = Reply::Kind::kError; break;
    default: BudgetOf(task).why = "a RESP3 type was not asked for"; return nullptr;
  }
  node->text.assign(bytes, size);
  return Place(task, std::move(node));
}

void* NewArray(const redisReadTask* task, uint64_t elements) {
  Budget& budget = BudgetOf(task);
  if (task->type != REDIS_REPLY_ARRAY) {
    budget.why = "a RESP3 type was not asked for";
    return nullptr;
  }
  if (DepthOf(task) >= budget.limits.depth_max) {
    budget.why = "arrays nest deeper than " + std::to_string(budget.limits.depth_max);
    return nullptr;
  }
  if (elements > budget.elements_left) {
    budget.why =
        "a reply has more than " + std::to_string(budget.limits.elements_max) + " elements";
    return nullptr;
  }
  budget.elements_left -= elements;
  auto node = std::make_unique<Node>();
  node->kind = Reply::Kind::kArray;
  node->elements.resize(elements);
  return Place(task, std::move(node));
}

// hiredis 0.14 counts elements in int, 1.x in size_t, and only 1.x has doubles and booleans:
// generic lambdas fit whatever the installed header declares.
template <typename Functions>
Functions MakeFunctions() {
  Functions functions{};
  functions.createString = [](const redisReadTask* task, char* bytes, size_t size) -> void* {
    return NewText(task, bytes, size);
  };
  functions.createArray = [](const redisReadTask* task, auto elements) -> void* {
    return NewArray(task, static_cast<uint64_t>(elements));
  };
  functions.createInteger = [](const redisReadTask* task, long long value) -> void* {
    auto node = std::make_unique<Node>();
    node->kind = Reply::Kind::kInteger;
    node->integer = value;
    return Place(task, std::move(node));
  };
  functions.createNil = [](const redisReadTask* task) -> void* {
    return Place(task, std::make_unique<Node>());
  };
  functions.freeObject = [](void* object) { delete static_cast<Node*>(object); };
  if constexpr (requires { functions.createDouble; }) {
    functions.createDouble = [](const redisReadTask* task, double, char*, size_t) -> void* {
      BudgetOf(task).why = "a RESP3 type was not asked for";
      return nullptr;
    };
    functions.createBool = [](const redisReadTask* task, int) -> void* {
      BudgetOf(task).why = "a RESP3 type was not asked for";
      return nullptr;
    };
  }
  return functions;
}

// Depth is at most depth_max, so recursion is bounded.
Reply Freeze(Node& node) {  // NOLINT(misc-no-recursion)
  switch (node.kind) {
    case Reply::Kind::kNil: return Reply::Nil();
    case Reply::Kind::kInteger: return Reply::Integer(node.integer);
    case Reply::Kind::kString:
    case Reply::Kind::kStatus:
    case Reply::Kind::kError: return Reply::Text(node.kind, std::move(node.text));
    case Reply::Kind::kArray: break;
  }
  std::vector<Reply> elements;
  elements.reserve(node.elements.size());
  for (const std::unique_ptr<Node>& element : node.elements) {
    elements.push_back(element == nullptr ? Reply::Nil() : Freeze(*element));
  }
  return Reply::Array(std::move(elements));
}

}  // namespace

std::string FormatRespCommand(std::span<const std::string_view> arguments) {
  CHECK(!arguments.empty(), "a Redis command needs a name");
  std::vector<const char*> pointers;
  std::vector<size_t> sizes;
  pointers.reserve(arguments.size());
  sizes.reserve(arguments.size());
  for (const std::string_view argument : arguments) {
    pointers.push_back(argument.data() == nullptr ? "" : argument.data());
    sizes.push_back(argument.size());
  }
  char* bytes = nullptr;
  const auto size = redisFormatCommandArgv(&bytes, static_cast<int>(pointers.size()),
                                           pointers.data(), sizes.data());
  CHECK(size > 0 && bytes != nullptr, "redisFormatCommandArgv is out of memory");
  std::string command(bytes, static_cast<size_t>(size));
  redisFreeCommand(bytes);
  return command;
}

Reply Reply::Text(Kind kind, std::string text) {
  CHECK(kind == Kind::kString || kind == Kind::kStatus || kind == Kind::kError,
        "a text reply is a string, a status or an error");
  Reply reply(kind);
  reply.text_ = std::move(text);
  return reply;
}

Reply Reply::Integer(int64_t value) {
  Reply reply(Kind::kInteger);
  reply.integer_ = value;
  return reply;
}

Reply Reply::Array(std::vector<Reply> elements) {
  Reply reply(Kind::kArray);
  reply.elements_ = std::move(elements);
  return reply;
}

std::string Reply::Describe() const {
  switch (kind_) {
    case Kind::kNil: return "nil";
    case Kind::kString: return "string \"" + base::Printable(text_) + "\"";
    case Kind::kStatus: return "status \"" + base::Printable(text_) + "\"";
    case Kind::kError: return "error \"" + base::Printable(text_) + "\"";
    case Kind::kInteger: return "integer " + std::to_string(integer_);
    case Kind::kArray: return "array of " + std::to_string(elements_.size());
  }
  return "reply of an unknown kind";
}

struct RespReader::Impl {
  explicit Impl(const RespLimits& limits)
      : functions(MakeFunctions<redisReplyObjectFunctions>()),
        budget{limits, limits.elements_max, {}} {
    reader = redisReaderCreateWithFunctions(&functions);
    CHECK(reader != nullptr, "redisReaderCreateWithFunctions is out of memory");
    reader->privdata = &budget;  // the setter macro of 0.14 does not compile as C++
  }
  ~Impl() { redisReaderFree(reader); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  size_t waiting() const { return reader->len - reader->pos; }
  Error TooLarge() const {
    return {ErrorCode::kLimit, "a reply is larger than " +
                                   base::FormatSize(budget.limits.reply_bytes_max) +
                                   "; no reply to what we ask is"};
  }
  Error Broken() const {
    if (!budget.why.empty()) return {ErrorCode::kLimit, "not a reply we can take: " + budget.why};
    return {ErrorCode::kInvalid,
            "not a RESP2 reply: " + base::Printable(redisReaderGetError(reader))};
  }

  redisReplyObjectFunctions functions;
  Budget budget;
  redisReader* reader = nullptr;
  uint64_t fed = 0;          // bytes given in so far
  uint64_t reply_start = 0;  // of those, where the reply being read begins
};

RespReader::RespReader(const RespLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RespReader::~RespReader() = default;

base::Status RespReader::Feed(std::span<const char> bytes) {
  if (bytes.empty()) return {};
  // Twice: one reply being read, and what came after it in the same piece.
  if (impl_->waiting() + bytes.size() > 2 * impl_->budget.limits.reply_bytes_max) {
    return impl_->TooLarge();
  }
  if (redisReaderFeed(impl_->reader, bytes.data(), bytes.size()) != REDIS_OK) {
    return impl_->Broken();
  }
  impl_->fed += bytes.size();
  return {};
}

base::Result<std::optional<Reply>> RespReader::Next() {
  Impl& impl = *impl_;
  void* root = nullptr;
  if (redisReaderGetReply(impl.reader, &root) != REDIS_OK) return impl.Broken();
  const uint64_t reply_end = root == nullptr ? impl.fed : impl.fed - impl.waiting();
  const std::unique_ptr<Node> node(static_cast<Node*>(root));
  if (reply_end - impl.reply_start > impl.budget.limits.reply_bytes_max) return impl.TooLarge();
  if (node == nullptr) return std::optional<Reply>();
  impl.reply_start = reply_end;
  impl.budget.elements_left = impl.budget.limits.elements_max;
  return std::optional<Reply>(Freeze(*node));
}

}  // namespace leasehold::proto
