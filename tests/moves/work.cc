#include "moves/work.h"

#include <array>

#include "base/check.h"
#include "base/random.h"
#include "base/text.h"

namespace leasehold::moves {
namespace {

// Bodies of different ids begin at different places of one pattern, so that a piece of another's
// body, a repeated and a missing piece are all seen. A prime beyond the page and segment sizes.
constexpr size_t kPlaces = 65537;
constexpr size_t kPatternBytes = kPlaces + kBodyMax;
constexpr uint64_t kPatternSeed = 20240229;  // any; both programs must have the same

const std::array<char, kPatternBytes>& Pattern() {
  static const auto* const pattern = [] {
    auto* bytes = new std::array<char, kPatternBytes>;
    base::Random random(kPatternSeed);
    for (char& byte : *bytes) byte = static_cast<char>(random.Next() >> 56);
    return bytes;
  }();
  return *pattern;
}

// Percentages of the mix, in the order they are drawn.
struct Size {
  unsigned percent;
  size_t bytes;
};
constexpr std::array<Size, 4> kBodies = {{{20, 0}, {50, 100}, {28, 8192}, {2, kBodyMax}}};
constexpr std::array<Size, 4> kAnswers = {{{10, 0}, {74, 200}, {15, 8192}, {1, kBodyMax}}};
constexpr unsigned kChunkedPercent = 20;
// Some requests take the application a while, so that a move finds work in flight.
constexpr unsigned kSlowPercent = 10;
constexpr unsigned kSlowestMs = 5;
// Of kSlowIds: about 50 in flight at 1000 a second.
constexpr unsigned kLongPercent = 50;
constexpr unsigned kLongestMs = 200;

size_t Draw(base::Random& random, const std::array<Size, 4>& sizes) {
  auto left = static_cast<unsigned>(random.Below(100));
  for (const Size& size : sizes) {
    if (left < size.percent) return size.bytes;
    left -= size.percent;
  }
  return 0;
}

void AppendNumber(std::string& out, std::string_view key, uint64_t value) {
  out.append(key).append(std::to_string(value));
}

}  // namespace

Work WorkOf(uint64_t id) {
  base::Random random(id);
  Work work;
  work.id = id;
  work.post = random.Below(2) == 0;
  if (work.post) {
    work.body = Draw(random, kBodies);
    work.chunked = random.Below(100) < kChunkedPercent;
  }
  work.answer = Draw(random, kAnswers);
  work.answer_chunked = random.Below(100) < kChunkedPercent;
  const bool slow = id >= kSlowIds;
  if (random.Below(100) < (slow ? kLongPercent : kSlowPercent)) {
    work.delay_ms = 1 + static_cast<unsigned>(random.Below(slow ? kLongestMs : kSlowestMs));
  }
  return work;
}

void AppendTarget(std::string& out, const Work& work) {
  AppendNumber(out, "/execute?id=", work.id);
  AppendNumber(out, "&body=", work.body);
  AppendNumber(out, "&answer=", work.answer);
  if (work.answer_chunked) out += "&chunked=1";
  if (work.delay_ms != 0) AppendNumber(out, "&ms=", work.delay_ms);
}

uint64_t QueryNumber(std::string_view target, std::string_view key, uint64_t otherwise) {
  size_t at = target.find('?');
  while (at != std::string_view::npos) {
    const std::string_view rest = target.substr(at + 1);
    if (rest.size() > key.size() && rest.substr(0, key.size()) == key && rest[key.size()] == '=') {
      const std::string_view value = rest.substr(key.size() + 1);
      const auto number = base::ParseUint64(value.substr(0, value.find('&')));
      return number.ok() ? *number : otherwise;
    }
    at = target.find('&', at + 1);
  }
  return otherwise;
}

std::string_view BodyOf(uint64_t id, size_t from, size_t length) {
  CHECK(from + length <= kBodyMax, "no body is that long");
  return {Pattern().data() + id * 7919 % kPlaces + from, length};
}

void BodyCheck::Take(std::string_view piece) {
  right_ = right_ && size_ + piece.size() <= kBodyMax && piece == BodyOf(id_, size_, piece.size());
  size_ += piece.size();
}

}  // namespace leasehold::moves
