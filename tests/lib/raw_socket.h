// RawSocket and RawServer: plain non-blocking sockets of a test, outside the loop under test: what
// a client or an upstream of a gate really sees on the wire (bytes, an orderly end, a reset). Asked
// by hand: Poll() takes what has arrived.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/address.h"

namespace leasehold::testing {

class RawSocket {
 public:
  explicit RawSocket(int fd) : fd_(fd) {}
  ~RawSocket() { Close(); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  // Does not wait. A refused connect shows as reset(), now or at a Poll().
  static std::unique_ptr<RawSocket> Connect(const base::Address& address);

  // Bytes the kernel took; 0 when its buffer is full or the connection is broken.
  size_t Send(std::string_view bytes);
  void ShutdownWrite();
  void Close();
  void CloseWithReset();
  // Whatever comes is dropped from now on, and nothing is acknowledged: as if the machine had gone.
  void GoDeaf();

  // Takes what has arrived; true if there was anything new: bytes, the end, or a reset.
  bool Poll();
  const std::string& received() const { return received_; }
  bool ended() const { return ended_; }  // the peer's orderly end
  bool reset() const { return reset_; }
  bool over() const { return ended_ || reset_; }

 private:
  int fd_;
  std::string received_;
  bool ended_ = false;
  bool reset_ = false;
};

class RawServer {
 public:
  // Port 0 is resolved. CHECKs that it could listen: a test's own address is free.
  explicit RawServer(const base::Address& address, int backlog = 64);
  ~RawServer() { Close(); }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  const base::Address& address() const { return address_; }
  std::unique_ptr<RawSocket> Accept();  // nullptr: nobody waits
  void Close();

 private:
  int fd_;
  base::Address address_;
};

}  // namespace leasehold::testing
