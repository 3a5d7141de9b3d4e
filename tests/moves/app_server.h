// AppServer: a small HTTP/1.1 server that executes the harness's requests and logs each
// (app_main.cc says how). One process, one loop, one request at a time per connection. Owned by
// main. Paths:
//
//   /execute?id=&body=&answer=&chunked=&ms=   checks the body, answers after ms with the id's bytes
//   /download?id=&bytes=&ms=               sends bytes over ms, paced
//   /ws                                    101, then gives every byte back
//   else                                   200 with the name, or 503 while the file `unready` is
//   there
//
// With `lines` it also listens for AppLines (app_lines.h). Invariant: a request is logged before a
// byte of its answer is sent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "moves/fence.h"

namespace leasehold::moves {

class AppConnection;
class AppLines;

struct AppOptions {
  std::string name;
  std::string log;      // a path; appended to
  std::string fence;    // a path; empty: nothing is refused
  std::string unready;  // a path
  bool lines = false;
  uint16_t port = 0;  // on loopback; 0: of the kernel's choice
  uint16_t lines_port = 0;
};

// What a line of the log says of a request, besides what happened.
struct Stamp {
  uint64_t id = 0;
  std::string_view token = "0";
  std::string_view sequence = "0";
  std::string_view process = "-";  // of Lease-Holder
  // When the kernel had the last of what is read by now: a sidecar's own doing, however late this
  // process came to run.
  int64_t arrived = 0;
};

class AppServer {
 public:
  AppServer(loop::Loop& loop, AppOptions options);
  ~AppServer();

  // After this the ports are known.
  base::Result<uint16_t> Listen();
  base::Result<uint16_t> ListenForLines();

  // ---- for AppConnection and AppLines ----
  loop::Loop& loop() { return loop_; }
  const std::string& name() const { return options_.name; }
  const AppOptions& options() const { return options_; }
  void Log(char kind, const Stamp& stamp);
  // Logs E, or W when it is not `right`; F and false when the fence refuses it: then it was not
  // done.
  bool Execute(const Stamp& stamp, bool right);
  void Bury(AppConnection* connection);
  void Bury(AppLines* connection);

 private:
  using Accept = std::function<void(int fd, std::string peer)>;
  base::Result<uint16_t> ListenOn(uint16_t port, Accept accept);

  loop::Loop& loop_;
  const AppOptions options_;
  Fence fence_;
  int log_fd_ = -1;
  std::vector<std::unique_ptr<loop::Listener>> listeners_;
  std::vector<std::unique_ptr<AppConnection>> connections_;
  std::vector<std::unique_ptr<AppLines>> lines_;
};

// Boot clock, nanoseconds: when the last data came to this socket. The grain is the kernel's tick.
int64_t ArrivedAt(int fd);

}  // namespace leasehold::moves
