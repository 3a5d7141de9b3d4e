// AppServer: a small HTTP/1.1 server that executes the harness's requests and logs each
// (app_main.cc says how). One process, one loop, one request at a time per connection. Owned by
// main. Paths:
//
//   /execute?id=&body=&answer=&chunked=&ms=   checks the body, answers after ms with the id's bytes
//   /download?id=&bytes=&ms=               sends bytes over ms, paced
//   /ws                                    101, then gives every byte back
//   else                                   200 with the name
//
// Invariant: a request is logged before a byte of its answer is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "loop/listener.h"
#include "loop/loop.h"

namespace leasehold::moves {

class AppConnection;

class AppServer {
 public:
  // Appends to `log_fd`, which stays open.
  AppServer(loop::Loop& loop, std::string name, int log_fd);
  ~AppServer();

  // On a loopback port of the kernel's choice, which it returns.
  base::Result<uint16_t> Listen();

  // ---- for AppConnection ----
  loop::Loop& loop() { return loop_; }
  const std::string& name() const { return name_; }
  void Log(char kind, uint64_t id, std::string_view token, std::string_view sequence);
  void Bury(AppConnection* connection);

 private:
  loop::Loop& loop_;
  const std::string name_;
  const int log_fd_;
  std::unique_ptr<loop::Listener> listener_;
  std::vector<std::unique_ptr<AppConnection>> connections_;
};

}  // namespace leasehold::moves
