// HTTP/1 parser against damaged messages: whatever the bytes, it ends in an orderly way, and
// cutting them into pieces does not change the verdict or what came out before it. Seeded, so that
// a failure repeats.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "proto/http1.h"

namespace leasehold::proto::http1 {
namespace {

const std::vector<std::string> kSeeds = {
    "GET /a HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: "
    "u\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 204 "
    "No\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nHTTP/1.1 200 "
    "OK\r\n\r\nrest"};

struct Verdict {
  std::string heads;  // one letter per event, bodies by their bytes
  bool error = false;
  bool operator==(const Verdict&) const = default;
};

template <typename P>
Verdict Run(std::string_view bytes, size_t piece_size) {
  Limits limits;
  limits.head_bytes_max = 512;
  limits.target_bytes_max = 128;
  P parser(limits);
  Verdict verdict;
  while (!bytes.empty() && !verdict.error) {
    const std::string piece(bytes.substr(0, piece_size));
    bytes.remove_prefix(piece.size());
    std::string_view rest = piece;
    for (;;) {
      const Step step = parser.Next(rest);
      EXPECT_LE(step.consumed, rest.size());
      rest.remove_prefix(step.consumed);
      if (step.event == Event::kNeedMore) {
        EXPECT_TRUE(rest.empty());
        break;
      }
      verdict.error = step.event == Event::kError;
      if (verdict.error) break;
      if (step.event == Event::kHead) verdict.heads += 'H';
      if (step.event == Event::kComplete) verdict.heads += 'C';
      verdict.heads += step.body;
    }
  }
  return verdict;
}

std::string Damage(std::string text, base::Random& random) {
  static constexpr std::string_view kNasty = "\r\n\t :;,0\x01\x7f\xff/*#HG";
  for (uint64_t i = random.Below(4) + 1; i > 0 && !text.empty(); --i) {
    const auto at = static_cast<size_t>(random.Below(text.size()));
    const char c = kNasty[static_cast<size_t>(random.Below(kNasty.size()))];
    switch (random.Below(4)) {
      case 0: text[at] = c; break;
      case 1: text.insert(at, 1, c); break;
      case 2: text.erase(at, static_cast<size_t>(random.Below(4)) + 1); break;
      default: text.insert(at, text.substr(at, static_cast<size_t>(random.Below(20)))); break;
    }
  }
  return text;
}

template <typename P>
void ExpectSameInPieces(const std::string& text) {
  const Verdict whole = Run<P>(text, text.size());
  for (const size_t size : {size_t{1}, size_t{5}}) {
    const Verdict pieces = Run<P>(text, size);
    ASSERT_EQ(pieces.error, whole.error) << "pieces of " << size << ": " << text;
    if (!whole.error) {
      ASSERT_EQ(pieces.heads, whole.heads) << text;
    }
  }
}

TEST(Http1RandomTest, DamagedMessagesGetTheSameVerdictWholeAndInPieces) {
  base::Random random(20261130);
  for (int i = 0; i < 6000; ++i) {
    const std::string& seed = kSeeds[static_cast<size_t>(i) % kSeeds.size()];
    const std::string text = Damage(seed, random);
    if (text.empty()) continue;
    ExpectSameInPieces<RequestParser>(text);
    ExpectSameInPieces<ResponseParser>(text);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace leasehold::proto::http1
