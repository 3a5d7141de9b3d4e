#include "gate/peer_hello.h"

#include <utility>

#include "crypto/digest.h"

namespace leasehold::gate {
namespace {

constexpr std::string_view kFormat = "1";

// As one word of a header: what a forged record says is no way to write lines of our own.
std::string Word(std::string_view text) {
  std::string word(text);
  for (char& c : word) {
    if (c <= ' ' || c > '~') c = '?';
  }
  return word;
}

// The word after `key` at the front of `text`, which loses both. False: it is not there.
bool TakeWord(std::string_view& text, std::string_view key, std::string_view* word) {
  if (!text.starts_with(key)) return false;
  text.remove_prefix(key.size());
  const size_t end = text.find(' ');
  *word = text.substr(0, end);
  text.remove_prefix(word->size());
  return !word->empty();
}

}  // namespace

bool ParsePeerHello(std::string_view text, PeerHello* hello) {
  *hello = {};
  if (text.ends_with(kPeerSay)) {
    hello->say = true;
    text.remove_suffix(kPeerSay.size());
  }
  if (!text.starts_with(kFormat)) return false;
  text.remove_prefix(kFormat.size());
  if (!TakeWord(text, " gate=", &hello->gate) || !TakeWord(text, " to=", &hello->to) ||
      !TakeWord(text, " from=", &hello->from)) {
    return false;
  }
  return text.empty() || (TakeWord(text, " mac=", &hello->mac) && text.empty());
}

std::string_view PeerCheckSentence(PeerCheck check) {
  switch (check) {
    case PeerCheck::kWelcome: return "it is welcome";
    case PeerCheck::kMalformed:
      return "the peer listener serves the sidecars of this gate only; clients use listen";
    case PeerCheck::kOtherGate:
      return "it was sent for a gate of another name; advertise must name this gate's peer_listen";
    case PeerCheck::kOtherProcess: return "it was sent for another process; the record was stale";
    case PeerCheck::kWrongSecret:
      return "its secret is not ours; every sidecar of this gate needs the same peer_secret_file";
  }
  return "it is refused";
}

PeerKey::PeerKey(std::string secret, std::string lease, const std::string& gate,
                 const std::string& own_process_id)
    : secret_(std::move(secret)),
      lease_(std::move(lease)),
      gate_(Word(gate)),
      own_(Word(own_process_id)) {}

const std::string& PeerKey::HelloTo(std::string_view process_id) {
  if (hello_.empty() || hello_to_ != process_id) {
    hello_to_ = process_id;
    const std::string to = Word(process_id);
    hello_ = std::string(kFormat) + " gate=" + gate_ + " to=" + to + " from=" + own_;
    if (!secret_.empty()) hello_ += " mac=" + Mac(to, own_);
  }
  return hello_;
}

PeerCheck PeerKey::Check(std::string_view text, bool* say) {
  *say = text.ends_with(kPeerSay);
  const std::string_view line = *say ? text.substr(0, text.size() - kPeerSay.size()) : text;
  if (!welcome_.empty() && crypto::EqualSecrets(line, welcome_)) return PeerCheck::kWelcome;
  PeerHello hello;
  if (!ParsePeerHello(text, &hello)) return PeerCheck::kMalformed;
  // First, because a mac is over our gate's name: another's would look like a wrong secret.
  if (hello.gate != gate_) return PeerCheck::kOtherGate;
  if (!secret_.empty() && !crypto::EqualSecrets(hello.mac, Mac(hello.to, hello.from))) {
    return PeerCheck::kWrongSecret;
  }
  if (hello.to != own_) return PeerCheck::kOtherProcess;
  welcome_ = line;
  return PeerCheck::kWelcome;
}

std::string PeerKey::Mac(std::string_view to, std::string_view from) const {
  std::string text = "leasehold-peer-1\n";
  for (const std::string_view part :
       {std::string_view(lease_), std::string_view(gate_), to, from}) {
    text.append(part).append("\n");
  }
  return crypto::HmacSha256Hex(secret_, text);
}

}  // namespace leasehold::gate
