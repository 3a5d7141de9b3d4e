// SignalClient: one connection of the signal socket: takes lines apart, writes lines, and keeps
// what this client registered for and has drained. The meaning of lines is signal_server.cc's.
// Owned by SignalServer. Invariants: a line in is at most kLineBytesMax, what waits to go out at
// most kQueueBytesMax, else the client is dropped; nobody ever waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "loop/loop.h"
#include "loop/stream.h"
#include "loop/timer.h"

namespace leasehold::admin {

class SignalClient final : public loop::StreamListener,
                           public std::enable_shared_from_this<SignalClient> {
 public:
  static constexpr size_t kLineBytesMax = size_t{16} * 1024;  // the longest op is under 1 KiB
  // Dozens of leases' hello and some hundred events: a reader that far behind has stopped reading.
  static constexpr size_t kQueueBytesMax = size_t{256} * 1024;
  // Answers under way at a time: one step-down per lease is what an honest client has.
  static constexpr uint32_t kPendingMax = 64;
  // For a client that sent its last byte, to read what is left.
  static constexpr base::Duration kFlushTimeout = base::Duration::Seconds(5);

  struct Owner {
    std::function<void(SignalClient&, std::string_view line)> on_line;  // never empty
    std::function<void(SignalClient&)> on_ended;  // will say nothing more; may still read answers
    // It is gone; `why` is empty when it left in order.
    std::function<void(SignalClient&, std::string_view why)> on_gone;
  };
  SignalClient(loop::Loop& loop, const Owner& owner, std::unique_ptr<loop::Stream> stream);
  void Start();

  void Send(std::string_view line);  // without its newline; nothing once it is over
  void Close(std::string_view why);  // at once; calls on_gone

  int uid() const { return uid_; }  // by peer credentials; -1: not known
  // By which other connections of the same user may say drained for this one. Empty: none.
  const std::string& name() const { return name_; }
  void SetName(std::string name) { name_ = std::move(name); }

  void Register(const std::string& lease) { leases_.insert(lease); }
  void RegisterAll() { all_leases_ = true; }
  void Unregister();  // of everything
  bool RegisteredFor(const std::string& lease) const {
    return all_leases_ || leases_.contains(lease);
  }
  bool registered() const { return all_leases_ || !leases_.empty(); }
  bool HasDrained(const std::string& lease, uint64_t token) const;
  void SetDrained(const std::string& lease, uint64_t token) { drained_[lease] = token; }
  void ForgetDrained(const std::string& lease) { drained_.erase(lease); }

  // An answer that comes later: a client that has ended stays until it has it.
  uint32_t pending() const { return pending_; }
  void BeginPending() { ++pending_; }
  void EndPending();

  void OnData(std::span<const char> bytes) override;
  void OnEnd() override;
  void OnDrained() override;
  void OnClosed(const base::Error& error) override;

 private:
  void TakeLines();
  void FinishIfEnded();

  const Owner& owner_;
  const int uid_;
  std::unique_ptr<loop::Stream> stream_;  // null: over
  loop::Timer flush_timer_;
  std::string input_;
  bool ended_ = false;
  uint32_t pending_ = 0;
  std::string name_;
  bool all_leases_ = false;
  std::set<std::string> leases_;
  std::map<std::string, uint64_t> drained_;  // lease -> token
};

// {"event":"error","code":"...","message":"..."}
std::string SignalErrorLine(std::string_view code, std::string_view message);

}  // namespace leasehold::admin
