// ScriptedSqs: the SQS of a gate's test: plain sockets outside the loop, whose answers the test
// writes, when it likes. Only GetQueueAttributes, which a gate asks by itself, is answered at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/raw_socket.h"
#include "lib/socket_peer.h"

namespace leasehold::gate {

class ScriptedSqs {
 public:
  // One request that has arrived.
  struct Asked {
    testing::RawSocket* socket = nullptr;
    std::string head;
    std::string body;
    bool Is(std::string_view action) const {
      return head.find("AmazonSQS." + std::string(action) + "\r\n") != std::string::npos ||
             body.find("Action=" + std::string(action)) != std::string::npos;
    }
    bool Has(std::string_view text) const { return body.find(text) != std::string::npos; }
  };

  const base::Address& address() const { return server_.address(); }
  void Close() { server_.Close(); }
  // Looks at all connections.
  void Poll() {
    while (auto socket = server_.Accept()) {
      connections_.push_back({std::move(socket), 0});
    }
    for (Connection& connection : connections_) {
      connection.socket->Poll();
      while (TakeRequest(connection)) {
      }
    }
  }
  static void Reply(const Asked& asked, std::string_view body, int status = 200,
                    std::string_view more = "") {
    asked.socket->Send("HTTP/1.1 " + std::to_string(status) +
                       " X\r\nContent-Type: application/x-amz-json-1.0\r\n"
                       "x-amzn-RequestId: of-sqs\r\n" +
                       std::string(more) + "Content-Length: " + std::to_string(body.size()) +
                       "\r\n\r\n" + std::string(body));
  }

  std::vector<Asked> asked;  // and not taken by the test
  std::string attributes = R"({"Attributes":{"VisibilityTimeout":"30"}})";
  int attributes_status = 200;

 private:
  struct Connection {
    std::unique_ptr<testing::RawSocket> socket;
    size_t taken = 0;
  };
  bool TakeRequest(Connection& connection) {
    const std::string_view rest =
        std::string_view(connection.socket->received()).substr(connection.taken);
    const size_t end = rest.find("\r\n\r\n");
    if (end == std::string_view::npos) return false;
    const size_t at = rest.find("Content-Length: ");
    const size_t length =
        at < end ? std::stoul(std::string(rest.substr(at + 16, rest.find('\r', at) - at - 16))) : 0;
    if (rest.size() < end + 4 + length) return false;
    Asked one;
    one.socket = connection.socket.get();
    one.head = std::string(rest.substr(0, end + 2));
    one.body = std::string(rest.substr(end + 4, length));
    connection.taken += end + 4 + length;
    if (one.Is("GetQueueAttributes") && one.head.find("Lease-Gate") == std::string::npos) {
      Reply(one, attributes, attributes_status);
    } else {
      asked.push_back(std::move(one));
    }
    return true;
  }

  testing::RawServer server_{testing::TcpAddress("127.0.0.1", 0)};
  std::vector<Connection> connections_;
};

}  // namespace leasehold::gate
