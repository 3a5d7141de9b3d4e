// RawHttpServer: the HTTP/1.1 server of a test, on plain sockets outside the loop under test: gives
// each whole request that has arrived, as it came, and answers nothing by itself. Asked by hand.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "lib/raw_socket.h"

namespace leasehold::testing {

// The first header of that name in `request`, trimmed; empty: none.
std::string HeaderOf(std::string_view request, std::string_view name);

class RawHttpServer {
 public:
  struct Request {
    RawSocket* from = nullptr;  // the server's
    std::string text;           // head and body
  };

  RawHttpServer();
  const base::Address& address() const { return server_.address(); }
  // The next whole request of any connection; nothing: none has arrived in full.
  std::optional<Request> Take();
  // How many connections have ever come.
  size_t Connections();
  // Listens no more; connections stay.
  void Close() { server_.Close(); }

 private:
  struct Peer {
    std::unique_ptr<RawSocket> socket;
    size_t taken = 0;  // bytes of what it has received
  };
  RawServer server_;
  std::vector<Peer> peers_;
};

}  // namespace leasehold::testing
