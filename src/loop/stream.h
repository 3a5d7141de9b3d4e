// Stream: a connected, non-blocking byte stream: TCP, Unix socket, or TLS over one. Owned by
// whoever uses it. Reads are pushed to a StreamListener from the loop; writes go to the kernel at
// once and what it does not take is queued. The queue is bounded by the caller: look at queued()
// and stop producing above your own limit. Invariant: a listener is never called from inside a call
// on the stream; after OnClosed or Close() never again.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/result.h"
#include "base/time.h"
#include "loop/loop.h"

namespace leasehold::loop {

class StreamListener {
 public:
  virtual ~StreamListener() = default;
  // Bytes arrived (never empty); valid only during the call. The listener may destroy the stream
  // inside it.
  virtual void OnData(std::span<const char> bytes) = 0;
  // The peer has sent its last byte (half-close). Writing is still possible.
  virtual void OnEnd() = 0;
  // May bytes that waited in the write queue still be sent? Asked before any of them leaves. False
  // drops them and breaks the connection (OnClosed): a queue must not outlive the right to send.
  virtual bool MayFlush() { return true; }
  // The write queue, which was not empty, is empty now.
  virtual void OnDrained() = 0;
  // The connection is broken (reset, TCP user time-out, TLS failure, write failed). Called once;
  // only destruction remains.
  virtual void OnClosed(const base::Error& error) = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;  // closes at once; queued bytes are dropped

  // Must be set before the first StartReading; may be exchanged at any time.
  virtual void SetListener(StreamListener* listener) = 0;
  virtual void StartReading() = 0;
  virtual void StopReading() = 0;  // back-pressure; also stops OnEnd until reading starts again
  virtual bool reading() const = 0;

  // Takes all bytes: sends what the kernel accepts now, queues the rest. Dropped after OnClosed.
  virtual void Write(std::string_view bytes) = 0;
  // The same for several pieces in one system call.
  virtual void Writev(std::span<const std::string_view> pieces) = 0;
  virtual size_t queued() const = 0;
  // Half-close after everything queued is sent.
  virtual void ShutdownWrite() = 0;
  // Nothing has arrived that the listener was not told of yet: no byte, no end, no trouble. For
  // whoever is about to use a connection that should have been silent; one system call.
  virtual bool Quiet() const { return true; }
  // Next Close or destruction resets the connection (RST) instead of closing in order.
  virtual void ResetOnClose() = 0;

  virtual bool is_tls() const = 0;
  // "10.0.0.7:51234" or "unix"; for logs and X-Forwarded-For. Without the port: peer_host().
  virtual const std::string& peer() const = 0;
  virtual std::string peer_host() const = 0;
  // Unix sockets: the peer's user id by peer credentials; -1 elsewhere.
  virtual int peer_uid() const = 0;
  // A dead peer is noticed when sent bytes stay unacknowledged this long (TCP_USER_TIMEOUT; no-op
  // on Unix). So is a living one that takes nothing for as long: a closed window counts too.
  virtual void SetUserTimeout(base::Duration d) = 0;
  // A dead peer is noticed while nothing is being sent: asked after each `period` of silence,
  // given up after three periods (keep-alive probes; whole seconds, at least one; no-op on Unix).
  // Not together with SetUserTimeout, which in Linux takes the place of the three.
  virtual void SetKeepAlive(base::Duration period) = 0;

  // Gives the descriptor away (not for TLS: -1) with an empty queue (CHECKed); this object is dead
  // afterwards.
  virtual int Detach() = 0;
};

// Takes ownership of a connected or accepted descriptor. `peer` as in Stream::peer().
std::unique_ptr<Stream> AdoptSocket(Loop& loop, int fd, std::string peer);

}  // namespace leasehold::loop
