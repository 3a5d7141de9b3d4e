// Load: sends requests at a constant rate, each at its own scheduled instant whether or not those
// before it were answered (an open loop: latencies count from the schedule, so that a stall is seen
// by all who would have come meanwhile), spread evenly over the gates. It is a load balancer's
// client: connections are kept, a gate that refuses the connect is passed over for the next one,
// Connection: close is honoured, and nothing is sent twice. Owned by main.
//
// Invariant: every scheduled request ends in exactly one line of the record.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/time.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "moves/work.h"

namespace leasehold::moves {

class LoadConnection;

struct LoadOptions {
  std::vector<base::Address> targets;
  uint64_t rate = 1000;  // a second
  uint64_t first_id = 1;
  base::Duration timeout = base::Duration::Seconds(30);  // from the schedule to the last byte
  std::string out;
};

// One request and what became of it.
struct Sent {
  uint64_t id = 0;
  size_t target = 0;  // the gate that it was sent to
  int64_t scheduled = 0;
  int64_t sent = 0;
  int64_t done = 0;
  std::string result;  // empty: under way
  std::string app;
  std::string token;
  unsigned refused = 0;  // gates that refused the connect before
};

class Load {
 public:
  Load(loop::Loop& loop, LoadOptions options);
  ~Load();

  void Start();
  // Schedules nothing more; `done` when every request has ended.
  void Finish(std::function<void()> done);
  bool WriteRecord() const;

  // ---- for LoadConnection ----
  loop::Loop& loop() { return loop_; }
  const LoadOptions& options() const { return options_; }
  // The connect was refused: nothing was sent, so the next gate may have the request.
  void Refused(LoadConnection* connection, Sent* request);
  void Done(Sent* request, std::string_view result);
  void Idle(LoadConnection* connection, size_t target);
  void Bury(LoadConnection* connection, size_t target);

 private:
  // Connections kept per gate, used in turn so that each stays busy; what a stall needed beyond
  // them is closed when it falls idle.
  static constexpr size_t kKept = 8;
  // A gate that refused a connect is asked for no spare ones for so long.
  static constexpr base::Duration kRefusedPause = base::Duration::Millis(100);

  void Tick();
  void Send(Sent* request, size_t target);
  void Sweep();
  void CheckFinished();

  loop::Loop& loop_;
  const LoadOptions options_;
  loop::Timer tick_;
  loop::Timer sweep_;
  base::MonoTime begin_;
  uint64_t next_ = 0;
  uint64_t answered_ = 0;
  uint64_t failed_ = 0;
  bool finishing_ = false;
  std::function<void()> finished_;
  std::deque<Sent> record_;  // addresses stay
  std::vector<std::unique_ptr<LoadConnection>> connections_;
  // By gate:
  std::vector<std::deque<LoadConnection*>> idle_;  // longest idle first
  std::vector<size_t> open_;                       // connections
  std::vector<base::MonoTime> spare_at_;           // when one that is not needed may be opened
};

}  // namespace leasehold::moves
