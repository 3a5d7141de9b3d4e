#include "moves/app_server.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "moves/app_connection.h"

namespace leasehold::moves {

AppServer::AppServer(loop::Loop& loop, std::string name, int log_fd)
    : loop_(loop), name_(std::move(name)), log_fd_(log_fd) {}
AppServer::~AppServer() = default;

base::Result<uint16_t> AppServer::Listen() {
  base::Address address;
  address.host = "127.0.0.1";
  auto opened = loop::Listener::Open(
      loop_, address, {},
      [this](int fd, std::string peer) {
        connections_.push_back(
            std::make_unique<AppConnection>(*this, loop::AdoptSocket(loop_, fd, std::move(peer))));
      },
      [](const base::Error& error) { std::fprintf(stderr, "%s\n", error.message.c_str()); });
  if (!opened.ok()) return opened.error();
  listener_ = std::move(opened).value();
  return listener_->bound().port;
}

void AppServer::Log(char kind, uint64_t id, std::string_view token, std::string_view sequence) {
  char line[256];
  const int length =
      std::snprintf(line, sizeof line, "%c %lld %s %llu %.*s %.*s\n", kind,
                    static_cast<long long>(loop::Loop::Now().nanos()), name_.c_str(),
                    static_cast<unsigned long long>(id), static_cast<int>(token.size()),
                    token.data(), static_cast<int>(sequence.size()), sequence.data());
  if (write(log_fd_, line, static_cast<size_t>(length)) != length) {
    std::perror("the shared log");  // a count that may be wrong is none
    std::abort();
  }
}

void AppServer::Bury(AppConnection* connection) {
  loop_.Post([this, connection] {
    const auto at = std::find_if(connections_.begin(), connections_.end(),
                                 [&](const auto& each) { return each.get() == connection; });
    if (at != connections_.end()) connections_.erase(at);
  });
}

}  // namespace leasehold::moves
