// Connect: resolves a name on the worker pool, tries the addresses in order, optionally speaks TLS,
// within one deadline. Reports refusal at once. Cancel by destroying the handle: the callback is
// then not called.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/address.h"
#include "base/result.h"
#include "base/time.h"
#include "loop/loop.h"
#include "loop/stream.h"

namespace leasehold::loop {

struct TlsOptions {
  std::string server_name;  // SNI and certificate name (or IP) to check
  std::string ca_file;      // empty: the system's
  std::string cert_file;    // client certificate chain, with key_file
  std::string key_file;
  bool verify = true;
};

struct ConnectOptions {
  base::Duration timeout = base::Duration::Seconds(5);
  const TlsOptions* tls = nullptr;  // copied during the call
  bool no_delay = true;
};

class Connecting {
 public:
  virtual ~Connecting() = default;
};

using ConnectCallback = std::function<void(base::Result<std::unique_ptr<Stream>>)>;

// IP literals, "localhost" (both loopbacks, IPv4 first) and Unix paths skip the resolver. The error
// names the address and the system's reason.
std::unique_ptr<Connecting> Connect(Loop& loop, const base::Address& address,
                                    const ConnectOptions& options, ConnectCallback done);

}  // namespace leasehold::loop
