#include "moves/app_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "moves/app_connection.h"
#include "moves/app_lines.h"

namespace leasehold::moves {
namespace {

[[noreturn]] void Die(const char* what) {
  std::perror(what);  // a count that may be wrong is none
  std::abort();
}

// Later, from the loop: whoever asks to be buried is still on the stack.
template <typename T>
void BuryLater(loop::Loop& loop, std::vector<std::unique_ptr<T>>& living, T* dead) {
  loop.Post([&living, dead] {
    std::erase_if(living, [dead](const auto& each) { return each.get() == dead; });
  });
}

}  // namespace

AppServer::AppServer(loop::Loop& loop, AppOptions options)
    : loop_(loop), options_(std::move(options)), fence_(options_.fence) {
  log_fd_ = open(options_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log_fd_ < 0) Die(options_.log.c_str());
}

AppServer::~AppServer() { close(log_fd_); }

base::Result<uint16_t> AppServer::Listen() {
  return ListenOn(options_.port, [this](int fd, std::string peer) {
    connections_.push_back(
        std::make_unique<AppConnection>(*this, loop::AdoptSocket(loop_, fd, std::move(peer)), fd));
  });
}

base::Result<uint16_t> AppServer::ListenForLines() {
  return ListenOn(options_.lines_port, [this](int fd, std::string peer) {
    lines_.push_back(
        std::make_unique<AppLines>(*this, loop::AdoptSocket(loop_, fd, std::move(peer)), fd));
  });
}

base::Result<uint16_t> AppServer::ListenOn(uint16_t port, Accept accept) {
  base::Address address;
  address.host = "127.0.0.1";
  address.port = port;
  auto opened = loop::Listener::Open(
      loop_, address, {}, std::move(accept),
      [](const base::Error& error) { std::fprintf(stderr, "%s\n", error.message.c_str()); });
  if (!opened.ok()) return opened.error();
  listeners_.push_back(std::move(opened).value());
  return listeners_.back()->bound().port;
}

void AppServer::Log(char kind, const Stamp& stamp) {
  char line[320];
  const int length =
      std::snprintf(line, sizeof line, "%c %lld %s %llu %.*s %.*s %.*s %lld\n", kind,
                    static_cast<long long>(loop::Loop::Now().nanos()), options_.name.c_str(),
                    static_cast<unsigned long long>(stamp.id), static_cast<int>(stamp.token.size()),
                    stamp.token.data(), static_cast<int>(stamp.sequence.size()),
                    stamp.sequence.data(), static_cast<int>(stamp.process.size()),
                    stamp.process.data(), static_cast<long long>(stamp.arrived));
  if (length >= static_cast<int>(sizeof line) ||
      write(log_fd_, line, static_cast<size_t>(length)) != length) {
    Die("the shared log");
  }
}

bool AppServer::Execute(const Stamp& stamp, bool right) {
  bool done = false;
  const auto token = base::ParseUint64(stamp.token);
  fence_.Apply(token.ok() ? *token : 0, stamp.process, [&](bool let_through) {
    done = let_through;
    Log(!let_through ? 'F' : right ? 'E' : 'W', stamp);
  });
  return done;
}

void AppServer::Bury(AppConnection* connection) { BuryLater(loop_, connections_, connection); }
void AppServer::Bury(AppLines* connection) { BuryLater(loop_, lines_, connection); }

int64_t ArrivedAt(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof info;
  const int64_t now = loop::Loop::Now().nanos();
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return now;
  return now - int64_t{info.tcpi_last_data_recv} * 1'000'000;
}

}  // namespace leasehold::moves
