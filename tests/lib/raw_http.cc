#include "lib/raw_http.h"

#include <utility>

#include "base/text.h"
#include "lib/socket_peer.h"

namespace leasehold::testing {

std::string HeaderOf(std::string_view request, std::string_view name) {
  const std::string_view head = request.substr(0, request.find("\r\n\r\n"));
  for (const std::string_view line : base::Split(head, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (!base::EqualsIgnoreCase(line.substr(0, colon), name)) continue;
    std::string_view value = line.substr(colon + 1);
    if (value.ends_with('\r')) value.remove_suffix(1);
    return std::string(base::Trim(value));
  }
  return {};
}

RawHttpServer::RawHttpServer() : server_(TcpAddress("127.0.0.1", 0)) {}

std::optional<RawHttpServer::Request> RawHttpServer::Take() {
  Connections();
  for (Peer& peer : peers_) {
    peer.socket->Poll();
    const std::string_view rest = std::string_view(peer.socket->received()).substr(peer.taken);
    const size_t head = rest.find("\r\n\r\n");
    if (head == std::string_view::npos) continue;
    const size_t size = head + 4 + std::stoul("0" + HeaderOf(rest, "Content-Length"));
    if (rest.size() < size) continue;
    peer.taken += size;
    return Request{peer.socket.get(), std::string(rest.substr(0, size))};
  }
  return std::nullopt;
}

size_t RawHttpServer::Connections() {
  while (auto socket = server_.Accept()) peers_.push_back({std::move(socket), 0});
  return peers_.size();
}

}  // namespace leasehold::testing
