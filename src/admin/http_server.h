// HttpServer: a small, bounded HTTP/1 server for the localhost API: accepts, limits and owns the
// connections. Knows nothing of routes or rules. Owned by ApiServer. Invariants: at most
// max_connections at a time, and a new client is not shut out by idle ones: the one that has been
// quiet longest makes room. Only clients that wait for an answer are never cut. Streams stand
// beside these and take no place among them: whoever produces them (EventStreams) limits them.
#pragma once

#include <list>
#include <memory>

#include "admin/http_connection.h"
#include "base/address.h"
#include "base/result.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "observe/log.h"

namespace leasehold::admin {

class HttpServer {
 public:
  // Binds now; the error names the address and why. `handler` is called from the loop.
  static base::Result<std::unique_ptr<HttpServer>> Start(loop::Loop& loop,
                                                         const base::Address& address,
                                                         const HttpServerOptions& options,
                                                         HttpHandler handler, observe::Log& log);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const base::Address& bound() const { return listener_->bound(); }
  size_t connections() const { return connections_.size() + streams_.size(); }

 private:
  HttpServer(loop::Loop& loop, const HttpServerOptions& options, HttpHandler handler,
             observe::Log& log);
  void Accept(int fd, const std::string& peer);
  bool MakeRoom();
  void Drop(HttpConnection& connection);
  void Move(HttpConnection& connection, bool to_streams);

  loop::Loop& loop_;
  const HttpServerOptions options_;
  const HttpHandler handler_;
  observe::Log& log_;
  observe::RateLimit full_limit_;
  observe::RateLimit trouble_limit_;
  HttpConnection::Owner owner_;
  std::list<std::shared_ptr<HttpConnection>> connections_;  // longest quiet first
  std::list<std::shared_ptr<HttpConnection>> streams_;
  std::unique_ptr<loop::Listener> listener_;
};

}  // namespace leasehold::admin
