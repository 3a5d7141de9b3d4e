// SignalOps: what a line from a client of the signal socket means: register, drained, step_down,
// status. Every op is answered by exactly one line {"op":...,"ok":true|false,...}; what is not an
// op gets one {"event":"error",...} line. An "id" (text or integer) is given back in the answer.
// Owned by SignalServer.
//
//   {"op":"register"[,"lease":L][,"name":N]}        this connection is waited for in drains
//   {"op":"drained","token":T[,"lease":L][,"name":N]}  its work of that drain is finished
//   {"op":"step_down",...}                          step_down_ask.h
//   {"op":"status"}
//
// A name (1 to 64 letters, digits, '.', '_', '-'; the connection's last one counts) lets another
// connection say drained for it: a script for the worker it belongs to. With "name", drained counts
// for every client that registered under it for that lease from the same user id, not for the
// speaker, and the answer says for how many ("clients"); none is the error not_registered. Names
// need not be unique: workers that share one are drained together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "admin/control.h"
#include "admin/signal_client.h"
#include "observe/log.h"
#include "proto/json.h"

namespace leasehold::admin {

// What ops need of the set of all clients.
class SignalRegistry {
 public:
  virtual ~SignalRegistry() = default;
  // Registered clients that have not said drained for this lease and token.
  virtual size_t WaitingFor(const std::string& lease, uint64_t token) const = 0;
  // Says drained for the clients that `uid` registered for this lease as `name`: how many.
  virtual size_t DrainedByName(const std::string& lease, uint64_t token, std::string_view name,
                               int uid) = 0;
  // Who is waited for has changed: drains are looked at again, later, from the loop.
  virtual void Changed(const std::string& lease) = 0;
};

class SignalOps {
 public:
  SignalOps(Control& control, SignalRegistry& registry, observe::Log& log)
      : control_(control), registry_(registry), log_(log) {}
  void Handle(SignalClient& client, std::string_view line);

 private:
  struct Op;
  void Register(const Op& op);
  void Drained(const Op& op);
  void StepDown(const Op& op);
  void Status(const Op& op);

  Control& control_;
  SignalRegistry& registry_;
  observe::Log& log_;
};

// {"event":"hello","version":...,"node_id":...,"process_id":...,"leases":[...]}
std::string HelloLine(const Control& control);

}  // namespace leasehold::admin
