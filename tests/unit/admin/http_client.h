// HttpClient: what tests of the API use to speak raw HTTP and to read answers, framed by
// Content-Length, off a connection.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "lib/raw_socket.h"

namespace leasehold::admin {

struct Answered {
  int status = 0;
  std::string head;
  std::string body;
  std::string Header(const std::string& name) const {
    const size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const size_t start = at + name.size() + 4;
    return head.substr(start, head.find("\r\n", start) - start);
  }
};

class HttpClient {
 public:
  explicit HttpClient(const base::Address& address)
      : socket_(testing::RawSocket::Connect(address)) {}
  testing::RawSocket& socket() { return *socket_; }
  void Send(const std::string& text) { socket_->Send(text); }

  // Complete answers so far. `bodies` false: the answers are to HEAD.
  std::vector<Answered> Answers(bool bodies = true) {
    socket_->Poll();
    std::vector<Answered> out;
    const std::string& text = socket_->received();
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find("\r\n\r\n", at);
      if (end == std::string::npos) break;
      Answered answer;
      answer.head = text.substr(at, end + 2 - at);
      answer.status = std::atoi(answer.head.c_str() + 9);
      const std::string length = answer.Header("Content-Length");
      const size_t body =
          bodies && !length.empty() ? std::strtoull(length.c_str(), nullptr, 10) : 0;
      if (text.size() < end + 4 + body) break;
      answer.body = text.substr(end + 4, body);
      at = end + 4 + body;
      out.push_back(std::move(answer));
    }
    return out;
  }

 private:
  std::unique_ptr<testing::RawSocket> socket_;
};

inline std::string Get(const std::string& target, const std::string& more = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
}
inline std::string Post(const std::string& target, const std::string& body,
                        const std::string& more = "") {
  return "POST " + target +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         more + "\r\n" + body;
}

}  // namespace leasehold::admin
