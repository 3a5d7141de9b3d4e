#include "lib/socket_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace leasehold::testing {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int BoundSocket(sockaddr_in* bound) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  *bound = Loopback(0);
  socklen_t size = sizeof(*bound);
  if (bind(fd, reinterpret_cast<const sockaddr*>(bound), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(bound), &size) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

std::pair<int, int> TcpPair() {
  sockaddr_in address{};
  const int listener = BoundSocket(&address);
  if (listener < 0 || listen(listener, 1) != 0) return {-1, -1};
  const int a = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int b = -1;
  if (connect(a, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    b = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  }
  close(listener);
  fcntl(a, F_SETFL, O_NONBLOCK);
  return {a, b};
}

std::pair<int, int> UnixPair() {
  int fds[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) return {-1, -1};
  return {fds[0], fds[1]};
}

uint16_t ClosedPort() {
  sockaddr_in address{};
  const int fd = BoundSocket(&address);
  close(fd);
  return ntohs(address.sin_port);
}

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "leasehold-XXXXXX").string();
  if (const char* made = mkdtemp(pattern.data())) path_ = made;
}

TempDir::~TempDir() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

base::Address TcpAddress(const std::string& host, uint16_t port) {
  base::Address address;
  address.host = host;
  address.port = port;
  return address;
}

base::Address UnixAddress(const std::string& path) {
  base::Address address;
  address.kind = base::Address::Kind::kUnix;
  address.path = path;
  return address;
}

}  // namespace leasehold::testing
