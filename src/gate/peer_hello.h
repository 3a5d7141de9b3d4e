// PeerHello: how a sidecar says to another's peer listener who it is and whom it means: one line of
// words, carried in the Lease-Peer header of each forwarded request (http) or in a field of the
// PROXY protocol header (tcp). PeerKey writes and checks it for one gate. Owned by the gate.
//
//   1 gate=web to=<holder's process id> from=<ours> mac=<64 hexadecimal digits> [say]
//
// The secret itself never travels: mac is HMAC-SHA-256 of lease, gate, to and from under it, so
// that a forged record collects nothing that works elsewhere. "say" asks for an admission to be
// said before the answer. Invariant: what names another gate or another process is never served,
// whatever it proves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::gate {

inline constexpr std::string_view kPeerHeader = "Lease-Peer";
// What follows the hello when an admission is to be said.
inline constexpr std::string_view kPeerSay = " say";
// Values of the same header in answers of a peer listener, each of which bears one.
inline constexpr std::string_view kPeerAdmitted = "admitted";  // on an interim 199, which is ours
inline constexpr std::string_view kPeerAnswer = "answer";      // what became of an admitted request
inline constexpr std::string_view kPeerNotAdmitted = "not_admitted";  // 503: nothing was done
inline constexpr std::string_view kPeerRefused = "refused";           // 403: not one of us

// What a sender logs of a peer listener that refused it: the holder knows why, and who can mend it.
inline constexpr std::string_view kPeerRefusesUs =
    "it refuses this sidecar; every sidecar of this gate needs the same peer_secret_file and an "
    "advertise that names its own peer_listen; the holder's log says which";

struct PeerHello {
  std::string_view gate;
  std::string_view to;
  std::string_view from;
  std::string_view mac;  // "" without a secret
  bool say = false;
};
// False: not such a line.
bool ParsePeerHello(std::string_view text, PeerHello* hello);

enum class PeerCheck : uint8_t {
  kWelcome,
  kMalformed,     // no hello, or not one that this version understands
  kOtherGate,     // meant for another gate: a wrong advertise, or a forged record
  kOtherProcess,  // meant for a process that had this address before: a stale record
  kWrongSecret,
};
// A sentence for logs and answers.
std::string_view PeerCheckSentence(PeerCheck check);

class PeerKey {
 public:
  // `secret` empty: no mac is written, and one that comes is not looked at.
  PeerKey(std::string secret, std::string lease, const std::string& gate,
          const std::string& own_process_id);
  // The line for a holder, without "say". Cached: cheap while the holder stays.
  const std::string& HelloTo(std::string_view process_id);
  // The line that last was welcome is recognised without work.
  PeerCheck Check(std::string_view text, bool* say);

 private:
  std::string Mac(std::string_view to, std::string_view from) const;

  const std::string secret_;
  const std::string lease_;
  const std::string gate_;
  const std::string own_;
  std::string hello_;
  std::string hello_to_;
  std::string welcome_;  // the line last found good, without "say"
};

}  // namespace leasehold::gate
