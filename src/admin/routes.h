// Routes: the table of the localhost API, one row per route, and what each row answers. Who may ask
// is access.h's business, how a request arrives http_server.h's. Owned by ApiServer. Invariant: a
// step-down that was asked for goes on whether or not its client waits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "admin/access.h"
#include "admin/control.h"
#include "admin/event_streams.h"
#include "admin/http_message.h"
#include "admin/target.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::admin {

class Routes {
 public:
  Routes(loop::Loop& loop, Control& control, observe::Metrics& metrics, EventStreams& events,
         observe::Log& log);
  void Handle(const AccessRules& rules, HttpRequest request, const HttpReply& reply);

 private:
  struct Call {
    const HttpRequest& request;
    const Target& target;
    std::string lease;  // of {name} in the path, else of ?lease=
    const HttpReply& reply;
  };
  struct Route;
  static const Route kRoutes[];

  void Index(const Call& call);
  void Livez(const Call& call);
  void Readyz(const Call& call);
  void Leaderz(const Call& call);
  void Standbyz(const Call& call);
  void Status(const Call& call);
  void Leases(const Call& call);
  void Lease(const Call& call);
  void Describe(const Call& call);
  void StepDown(const Call& call);
  void Config(const Call& call);
  void Audit(const Call& call);
  void Metrics(const Call& call);
  void Events(const Call& call);
  void OpenApi(const Call& call);
  void AskStepDown(const StepDownAsk& ask, bool wait, const Call& call);

  loop::Loop& loop_;
  Control& control_;
  observe::Metrics& metrics_;
  EventStreams& events_;
  observe::Log& log_;
  // Step-downs without an outcome. Shared with their callbacks, which may outlive this.
  std::shared_ptr<uint32_t> pending_;
};

}  // namespace leasehold::admin
