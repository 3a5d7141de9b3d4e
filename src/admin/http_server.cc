#include "admin/http_server.h"

#include <algorithm>
#include <utility>

namespace leasehold::admin {
namespace {

// One line a minute about a condition that lasts: enough to be found, too little to fill a disk.
constexpr base::Duration kLogInterval = base::Duration::Seconds(60);

}  // namespace

HttpServer::HttpServer(loop::Loop& loop, const HttpServerOptions& options, HttpHandler handler,
                       observe::Log& log)
    : loop_(loop),
      options_(options),
      handler_(std::move(handler)),
      log_(log),
      full_limit_(kLogInterval),
      trouble_limit_(kLogInterval),
      owner_{
          .loop = loop_,
          .options = options_,
          .handler = handler_,
          .on_served =
              [this](HttpConnection& connection) {
                const auto at =
                    std::find_if(connections_.begin(), connections_.end(),
                                 [&](const auto& entry) { return entry.get() == &connection; });
                if (at != connections_.end()) {
                  connections_.splice(connections_.end(), connections_, at);
                }
              },
          .on_over = [this](HttpConnection& connection) { Drop(connection); },
          .on_streaming = [this](HttpConnection& connection, bool on) { Move(connection, on); }} {}

HttpServer::~HttpServer() = default;

base::Result<std::unique_ptr<HttpServer>> HttpServer::Start(loop::Loop& loop,
                                                            const base::Address& address,
                                                            const HttpServerOptions& options,
                                                            HttpHandler handler,
                                                            observe::Log& log) {
  std::unique_ptr<HttpServer> server(new HttpServer(loop, options, std::move(handler), log));
  HttpServer* raw = server.get();
  auto listener = loop::Listener::Open(
      loop, address, loop::ListenOptions{},
      [raw](int fd, const std::string& peer) { raw->Accept(fd, peer); },
      [raw](const base::Error& error) {
        uint64_t suppressed = 0;
        if (!raw->trouble_limit_.Allow(raw->loop_.CachedNow(), &suppressed)) return;
        raw->log_.Warn("admin.accept_failed", error.message, {{"suppressed", suppressed}});
      });
  if (!listener.ok()) return listener.error();
  server->listener_ = std::move(listener).value();
  return server;
}

void HttpServer::Accept(int fd, const std::string& peer) {
  std::unique_ptr<loop::Stream> stream = loop::AdoptSocket(loop_, fd, peer);
  if (connections_.size() >= options_.max_connections && !MakeRoom()) {
    uint64_t suppressed = 0;
    if (full_limit_.Allow(loop_.CachedNow(), &suppressed)) {
      log_.Warn("admin.full",
                "a client of the API was turned away: all connections wait for answers",
                {{"max_connections", options_.max_connections}, {"suppressed", suppressed}});
    }
    return;  // closes it
  }
  connections_.push_back(std::make_shared<HttpConnection>(owner_, std::move(stream)));
  connections_.back()->Start();
}

bool HttpServer::MakeRoom() {
  const auto at = std::find_if(connections_.begin(), connections_.end(),
                               [](const auto& entry) { return entry->expendable(); });
  if (at == connections_.end()) return false;
  connections_.erase(at);
  return true;
}

void HttpServer::Drop(HttpConnection& connection) {
  const auto is_it = [&](const auto& entry) { return entry.get() == &connection; };
  connections_.remove_if(is_it);
  streams_.remove_if(is_it);
}

void HttpServer::Move(HttpConnection& connection, bool to_streams) {
  auto& from = to_streams ? connections_ : streams_;
  auto& to = to_streams ? streams_ : connections_;
  const auto at = std::find_if(from.begin(), from.end(),
                               [&](const auto& entry) { return entry.get() == &connection; });
  if (at == from.end()) return;
  // A stream that has ended lingers as any other client does: in a place, or in none.
  const bool full = !to_streams && connections_.size() >= options_.max_connections && !MakeRoom();
  to.splice(to.end(), from, at);
  if (full) to.pop_back();
}

}  // namespace leasehold::admin
