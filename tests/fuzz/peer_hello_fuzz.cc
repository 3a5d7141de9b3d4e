// The greeting of another sidecar at the peer listener (Lease-Peer, or the field in the PROXY
// header), written by a stranger. Asserted of any text: a second parser of the line agrees on
// whether it is one and on its words; a key with a secret never welcomes it unless its mac is the
// one that the secret gives for exactly these words; none welcomes what names another gate or
// process; "say" is heard as it stands; a refusal stays one when asked again, also after a welcome
// one was remembered, and a welcome one stays welcome after refusals; and whatever names a key is
// given, its own greeting is one line that the key it is meant for understands and welcomes.
#include <array>
#include <string>
#include <string_view>

#include "fuzz/fuzz_target.h"
#include "gate/peer_hello.h"

namespace leasehold::fuzz {
namespace {

using gate::PeerCheck;
using gate::PeerHello;
using gate::PeerKey;

constexpr std::string_view kSecret = "s3cret";
constexpr std::string_view kOwn = "to-1";

struct Words {
  bool right = false;
  std::array<std::string_view, 4> values;  // gate, to, from, mac
  bool say = false;
};

// Words parted by single blanks, read from the front: "1 gate=G to=T from=F[ mac=M][ say]".
Words ReadWords(std::string_view line) {
  constexpr std::array<std::string_view, 4> kKeys = {"gate=", "to=", "from=", "mac="};
  Words words;
  if (line.substr(0, 2) != "1 ") return words;
  size_t next = 0;
  size_t at = 2;
  for (;;) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    if (next >= 3 && word == "say" && end == line.size()) {
      words.say = true;
    } else if (next < 4 && word.starts_with(kKeys[next]) && word.size() > kKeys[next].size()) {
      words.values[next] = word.substr(kKeys[next].size());
      ++next;
    } else {
      return words;
    }
    if (end == line.size()) break;
    at = end + 1;
  }
  words.right = next >= 3;
  return words;
}

void CheckParsed(std::string_view line, const Words& words) {
  PeerHello hello;
  const bool is_one = gate::ParsePeerHello(line, &hello);
  CHECK(is_one == words.right, "the two parsers disagree on what is a greeting");
  if (!is_one) return;
  CHECK(hello.gate == words.values[0] && hello.to == words.values[1] &&
            hello.from == words.values[2] && hello.mac == words.values[3],
        "the two parsers disagree on its words");
  CHECK(hello.say == words.say, "the two parsers disagree on whether it says \"say\"");
}

PeerCheck Ask(PeerKey& key, std::string_view line) {
  bool say = false;
  const PeerCheck check = key.Check(line, &say);
  CHECK(check != PeerCheck::kWelcome || say == line.ends_with(gate::kPeerSay),
        "\"say\" is not heard as it stands");
  CHECK(!gate::PeerCheckSentence(check).empty(), "a verdict without a sentence");
  return check;
}

void CheckOpenKey(std::string_view line, const Words& words) {
  PeerKey key("", "orders", "web", std::string(kOwn));
  const bool meant = words.right && words.values[0] == "web" && words.values[1] == kOwn;
  CHECK((Ask(key, line) == PeerCheck::kWelcome) == meant, "welcomes what is meant for others");
}

void CheckSecretKey(std::string_view line, const Words& words) {
  PeerKey key(std::string(kSecret), "orders", "web", std::string(kOwn));
  std::string right;
  if (words.right) {
    // The sender's own words, as the product writes them for that name.
    PeerKey sender(std::string(kSecret), "orders", "web", std::string(words.values[2]));
    right = sender.HelloTo(kOwn);
    if (words.say) right += gate::kPeerSay;
  }
  const PeerCheck first = Ask(key, line);
  CHECK((first == PeerCheck::kWelcome) == (words.right && line == right),
        "welcomes without the proof, or not with it");
  PeerKey friendly(std::string(kSecret), "orders", "web", "from-1");
  CHECK(Ask(key, friendly.HelloTo(kOwn)) == PeerCheck::kWelcome, "a right one is not welcome");
  CHECK(Ask(key, line) == first, "the verdict changes after a welcome one was remembered");
  CHECK(Ask(key, friendly.HelloTo(kOwn)) == PeerCheck::kWelcome, "the right one is forgotten");
}

// `text` as the names of a gate, a holder and a sender.
void CheckWritten(std::string_view text) {
  const std::string gate(text.substr(0, text.size() / 3));
  const std::string to(text.substr(text.size() / 3, text.size() / 3));
  const std::string from(text.substr(text.size() / 3 * 2));
  for (const std::string_view secret : {std::string_view(), kSecret}) {
    PeerKey sender(std::string(secret), "orders", gate, from);
    const std::string line = sender.HelloTo(to);
    for (const char c : line) CHECK(c >= ' ' && c <= '~', "a name writes more than words");
    if (gate.empty() || to.empty() || from.empty()) continue;  // no such configuration
    PeerKey holder(std::string(secret), "orders", gate, to);
    CHECK(Ask(holder, line) == PeerCheck::kWelcome, "its own greeting is not welcome");
    CHECK(Ask(holder, line + std::string(gate::kPeerSay)) == PeerCheck::kWelcome, "nor with say");
  }
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view line = View(data, size);
  const Words words = ReadWords(line);
  CheckParsed(line, words);
  CheckOpenKey(line, words);
  CheckSecretKey(line, words);
  CheckWritten(line);
  return 0;
}
