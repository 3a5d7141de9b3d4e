// Credentials of AWS, and CredentialsProvider: who has them now. The chain of sources (in the order
// that AWS's own SDKs use) is in chain.h, one source a file; this is what users of credentials see.
// Not here: signing (proto/sigv4.h). Owned by app, shared by all services of one profile: a
// provider asks its source once for all who wait.
//
// Invariants: `done` is called exactly once, later, from the loop. Credentials that expire are
// fetched again before they do, with jitter, and the old ones serve while that fails, until their
// expiry. No secret is ever part of an error, a description or a log line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "proto/sigv4.h"

namespace leasehold::aws {

struct Credentials {
  proto::sigv4::Key key;
  std::optional<int64_t> expires_unix_ms;  // by the wall clock; nullopt: they do not
  std::string source;  // "environment", "profile \"orders\" of /root/.aws/credentials", "EC2
                       // instance metadata (role orders)", ...: for messages
};
using SharedCredentials = std::shared_ptr<const Credentials>;

class CredentialsProvider {
 public:
  using Callback = std::function<void(base::Result<SharedCredentials>)>;
  virtual ~CredentialsProvider() = default;  // callbacks that are out are not called

  // The present ones, fetched if need be. An error (kRefused: no source has any, or the source
  // refused; kUnavailable, kTimeout: it could not be asked) names the sources that were looked at
  // and what would be right.
  virtual void Get(Callback done) = 0;
  // The service refused `used` (expired, unknown key, wrong signature): the source is asked again
  // at the next Get, files are read again. Nothing happens if newer ones are there already; sources
  // are asked at most once a second for this.
  virtual void NoteRefused(const SharedCredentials& used) = 0;
  // "profile \"orders\"", "the default chain": for messages and logs.
  virtual std::string Describe() const = 0;
};

}  // namespace leasehold::aws
