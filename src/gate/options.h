// Options of one gate, as `sidecar.conf` gives them (DESIGN 4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/time.h"

namespace leasehold::gate {

enum class Type { kTcp, kHttp, kSqs };
std::string_view TypeName(Type type);  // "tcp", "http", "sqs"
enum class StandbyPolicy {
  kRefuse,   // tcp: not listening
  kClose,    // tcp: accept and close at once
  kReject,   // http: 503
  kHold,     // queue, bounded
  kForward,  // send to the holder's gate; hold while it is unknown or stepping down
};
enum class OnLoss { kCut, kFinish };
enum class StandbySend { kReject, kPass };  // sqs: SendMessage and SendMessageBatch on a standby

// Default of an sqs gate's body_bytes_max: 1 MiB of messages, which is the most SQS takes, grows to
// three times that in a form, and to six where JSON escapes every byte.
inline constexpr uint64_t kSqsBodyBytesMax = uint64_t{8} * 1024 * 1024;

// An sqs gate's upstream: the service, not an address. Empty: the environment's or the profile's.
struct SqsOptions {
  std::string region;
  std::string endpoint;  // "https://sqs.eu-central-1.amazonaws.com"
  std::string profile;
  StandbySend standby_send = StandbySend::kReject;
  uint32_t max_polls = 1000;       // ReceiveMessage calls that wait at a time
  uint32_t max_in_flight = 20000;  // messages received and not yet deleted, of all queues: beyond
                                   // it nothing more is received
};

struct Options {
  std::string name;
  Type type = Type::kHttp;
  std::string lease;  // name of its lease; filled in when there is only one
  base::Address listen;
  base::Address upstream;
  StandbyPolicy standby = StandbyPolicy::kReject;  // tcp default: kRefuse
  OnLoss on_loss = OnLoss::kCut;
  bool outbound =
      false;  // from the application: stays open during a drain until just before the release

  // Where other sidecars' traffic arrives: it serves only while the lease is held and never
  // forwards again. Empty (no host, no path): no peer listener, and others cannot forward here.
  base::Address peer_listen;
  // What the lease record says for other sidecars to connect to, "host:port"; port 0: the one that
  // peer_listen got. Empty: peer_listen itself.
  base::Address advertise;
  // The secret that sidecars of this gate share, so that nobody else speaks there; empty: none.
  std::string peer_secret_file;

  uint32_t max_connections = 10000;
  uint32_t max_held = 1000;
  uint64_t head_bytes_max = 16 * 1024;   // request or response head
  uint64_t target_bytes_max = 8 * 1024;  // request target: 414 above
  uint64_t body_bytes_max = 0;           // request body: 413 above; 0: no limit
  uint64_t buffer_bytes = 64 * 1024;     // a direction
  base::Duration hold_timeout;           // zero: grace + hold-off + 5 s, filled in by config
  base::Duration head_timeout = base::Duration::Seconds(10);  // 408
  base::Duration idle_timeout = base::Duration::Seconds(75);  // client, between two requests
  base::Duration body_timeout =
      base::Duration::Seconds(30);  // between two reads of a body: 408; an answer nobody takes: cut
  base::Duration connect_timeout = base::Duration::Seconds(2);  // 502 / 504
  base::Duration response_timeout =
      base::Duration::Seconds(60);  // until the answer begins: 504; between its reads: cut
  base::Duration tunnel_idle_timeout =
      base::Duration::Seconds(3600);  // tcp and upgraded connections
  base::Duration upstream_idle_timeout = base::Duration::Seconds(30);  // pooled connections
  uint32_t upstream_idle_max = 128;                                    // pooled connections kept

  SqsOptions sqs;

  bool forwards() const { return standby == StandbyPolicy::kForward; }
  // Has work that may go on when the lease is given back: what is forwarded, or a receive that is
  // with SQS, whose messages nobody else would give back.
  bool outlasts_lease() const { return forwards() || type == Type::kSqs; }
};

}  // namespace leasehold::gate
