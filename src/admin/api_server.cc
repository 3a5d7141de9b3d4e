#include "admin/api_server.h"

#include <utility>

#include "admin/access.h"
#include "admin/event_streams.h"
#include "admin/http_server.h"
#include "admin/routes.h"

namespace leasehold::admin {
namespace {

class ApiServerImpl final : public ApiServer {
 public:
  ApiServerImpl(loop::Loop& loop, AccessRules rules, Control& control, observe::Metrics& metrics,
                observe::EventBus& events, observe::Log& log)
      : rules_(std::move(rules)),
        events_(loop, control, events, log),
        routes_(loop, control, metrics, events_, log) {}
  ~ApiServerImpl() override { events_.EndAll(); }

  base::Status Listen(loop::Loop& loop, const base::Address& address, uint32_t max_connections,
                      observe::Log& log) {
    HttpServerOptions options;
    options.max_connections = max_connections;
    auto server = HttpServer::Start(
        loop, address, options,
        [this](const HttpRequest& request, const HttpReply& reply) {
          routes_.Handle(rules_, request, reply);
        },
        log);
    if (!server.ok()) return server.error();
    server_ = std::move(server).value();
    rules_.SetBound(server_->bound());
    return {};
  }

  std::string bound() const override { return server_->bound().ToString(); }

 private:
  AccessRules rules_;
  EventStreams events_;
  Routes routes_;
  std::unique_ptr<HttpServer>
      server_;  // ends first: its connections call the routes and the streams
};

base::Error Named(const AdminOptions& options, const base::Error& error) {
  return {error.code, "admin.listen = \"" + options.listen + "\": " + error.message};
}

}  // namespace

base::Result<std::unique_ptr<ApiServer>> ApiServer::Start(
    loop::Loop& loop, const AdminOptions& options, const std::string& token, Control& control,
    observe::Metrics& metrics, observe::EventBus& events, observe::Log& log) {
  const auto address = base::ParseAddress(options.listen);
  if (!address.ok()) return Named(options, address.error());
  auto rules = AccessRules::Make(options, *address, token);
  if (!rules.ok()) return rules.error();
  auto server = std::make_unique<ApiServerImpl>(loop, std::move(rules).value(), control, metrics,
                                                events, log);
  const base::Status status = server->Listen(loop, *address, options.max_connections, log);
  if (!status.ok()) return Named(options, status.error());
  return std::unique_ptr<ApiServer>(std::move(server));
}

}  // namespace leasehold::admin
