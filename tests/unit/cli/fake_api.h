// FakeApi: a small HTTP server on loopback with scripted answers, on the test's own loop. It
// records what it was asked. It can also stay silent, or end the connection without an answer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "loop/listener.h"
#include "loop/loop.h"
#include "loop/stream.h"

namespace leasehold::cli {

class FakeApi {
 public:
  struct Request {
    std::string line;  // "GET /v1/status"
    std::string head;
    std::string body;
  };
  enum class Behaviour { kAnswer, kSilent, kHangUp };
  struct Answer {
    int status = 200;
    std::string body;
    Behaviour behaviour = Behaviour::kAnswer;
    std::string content_type = "application/json";
  };

  explicit FakeApi(loop::Loop& loop);
  ~FakeApi();

  // The answers to a request line, in order; the last one again and again.
  void On(const std::string& line, Answer answer) { answers_[line].push_back(std::move(answer)); }
  void On(const std::string& line, const std::string& body) { On(line, Answer{200, body}); }
  // As the real API words its errors.
  static Answer Problem(int status, const std::string& code, const std::string& detail);

  const std::vector<Request>& requests() const { return requests_; }
  std::string url() const;
  // How many requests had this line.
  size_t Count(const std::string& line) const;

 private:
  class Connection;
  Answer Next(const std::string& line);

  loop::Loop& loop_;
  std::unique_ptr<loop::Listener> listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::map<std::string, std::vector<Answer>> answers_;
  std::map<std::string, size_t> asked_;
  std::vector<Request> requests_;
};

}  // namespace leasehold::cli
