// Work: what one request of the move harness asks for and what its bodies are, both pure functions
// of its id, so that the application and the client each know what the other must say. Values only;
// used by moves_app and moves_load. Invariant: the same id is the same work in every process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::moves {

// The largest body, either way.
inline constexpr size_t kBodyMax = size_t{200} * 1024;

struct Work {
  uint64_t id = 0;
  bool post = false;
  bool chunked = false;         // the request's body
  size_t body = 0;              // bytes of the request
  size_t answer = 0;            // bytes of the answer
  bool answer_chunked = false;  // the answer's body
  unsigned delay_ms = 0;        // how long the application works at it
};

// Ids from here on take the application long, so that much is in flight at any time.
inline constexpr uint64_t kSlowIds = 1'000'000'000;

// The mix: half GET, half POST; bodies of 0 B, 100 B, 8 KiB and a few of 200 KiB, some chunked.
Work WorkOf(uint64_t id);
// "/execute?id=7&answer=100&..." for WorkOf(7).
void AppendTarget(std::string& out, const Work& work);
// The number after "<key>=" in a target's query; `otherwise` when it is not there.
uint64_t QueryNumber(std::string_view target, std::string_view key, uint64_t otherwise);

// `length` bytes from `from` on of the body that belongs to an id. Lives as long as the program.
std::string_view BodyOf(uint64_t id, size_t from, size_t length);

// Compares a body with what it must be while it arrives in pieces.
class BodyCheck {
 public:
  void Begin(uint64_t id) { *this = BodyCheck(id); }
  BodyCheck() = default;
  explicit BodyCheck(uint64_t id) : id_(id) {}
  void Take(std::string_view piece);
  size_t size() const { return size_; }
  bool Is(size_t expected) const { return right_ && size_ == expected; }

 private:
  uint64_t id_ = 0;
  size_t size_ = 0;
  bool right_ = true;
};

}  // namespace leasehold::moves
