// What two sidecars' tcp gates say to each other before a client's bytes: the header that a sender
// writes at once (PROXY protocol v2 with a hello in it), and the verdict of eight bytes that the
// peer listener answers before anything else. Pure words; owns nothing. Not here: when to say
// what (tcp_gate.h) and the hello itself (peer_hello.h).
//
// Invariant of the exchange: nothing of the client's is sent before the verdict "admitted", so that
// any other end of it leaves the connection whole, to be sent elsewhere or served here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"

namespace leasehold::gate {

// From the connect to the verdict, on either side. A living peer answers within a round trip; a
// dead one is to be noticed within 3.5 s (DESIGN 4, Forwarding).
inline constexpr base::Duration kPeerTimeout = base::Duration::Seconds(3);
// While it carries, a dead one is noticed in that time too: by keep-alive probes when nothing is
// being sent, which give up after three periods, and by looking so often whether what was sent is
// acknowledged (loop::LooksDead) when something is. Not by TCP_USER_TIMEOUT: it also ends a
// connection whose application takes nothing for so long, which is back-pressure (measured on
// Linux 6.18: cut after 3.5 s of a window of zero).
inline constexpr base::Duration kPeerProbePeriod = base::Duration::Seconds(1);
inline constexpr base::Duration kPeerLookPeriod = base::Duration::Millis(500);

enum class PeerVerdict : uint8_t {
  kAdmitted = 0,     // what follows is the client's connection
  kNotAdmitted = 1,  // not now, or not by this process: nothing was done
  kRefused = 2,      // not one of us, or meant for another gate
};

inline constexpr size_t kVerdictBytes = 8;  // "LHPEER", the format, the verdict
std::string VerdictBytes(PeerVerdict verdict);

enum class VerdictRead : uint8_t {
  kMore,  // so far it is the front of a verdict
  kDone,  // the first kVerdictBytes are one
  kBad,   // no peer listener of a tcp gate speaks so
};
VerdictRead ReadVerdict(std::string_view bytes, PeerVerdict* verdict);

// The header for the client connected at `client_fd`. Empty: the hello is too long to be sent.
std::string PeerHeader(int client_fd, std::string_view hello);

// Are these the first bytes of another sidecar, which took a listener for clients for the peer
// listener? Then they are no client's, and must neither reach an application nor go round.
bool SidecarSpeaks(std::string_view first_bytes);

}  // namespace leasehold::gate
