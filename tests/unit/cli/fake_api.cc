#include "fake_api.h"

#include <algorithm>
#include <cstdlib>

#include "base/json_writer.h"

namespace leasehold::cli {

class FakeApi::Connection final : public loop::StreamListener {
 public:
  Connection(FakeApi& api, std::unique_ptr<loop::Stream> stream)
      : api_(api), stream_(std::move(stream)) {
    stream_->SetListener(this);
    stream_->StartReading();
  }

 private:
  void OnData(std::span<const char> bytes) override {
    input_.append(bytes.data(), bytes.size());
    const size_t head_end = input_.find("\r\n\r\n");
    if (head_end == std::string::npos || answered_) return;
    size_t length = 0;
    const std::string head = input_.substr(0, head_end);
    if (const size_t at = head.find("Content-Length: "); at != std::string::npos) {
      length = std::strtoul(head.c_str() + at + 16, nullptr, 10);
    }
    if (input_.size() < head_end + 4 + length) return;
    answered_ = true;
    Request request;
    request.line = head.substr(0, head.find(" HTTP/1.1"));
    request.head = head;
    request.body = input_.substr(head_end + 4, length);
    api_.requests_.push_back(request);
    Respond(api_.Next(request.line));
  }
  void Respond(const Answer& answer) {
    if (answer.behaviour == Behaviour::kSilent) return;
    if (answer.behaviour == Behaviour::kHangUp) {
      stream_.reset();
      return;
    }
    stream_->Write("HTTP/1.1 " + std::to_string(answer.status) +
                   " X\r\nContent-Type: " + answer.content_type +
                   "\r\nContent-Length: " + std::to_string(answer.body.size()) +
                   "\r\nConnection: close\r\n\r\n" + answer.body);
  }
  void OnEnd() override {}
  void OnDrained() override {}
  void OnClosed(const base::Error&) override {}

  FakeApi& api_;
  std::unique_ptr<loop::Stream> stream_;
  std::string input_;
  bool answered_ = false;
};

FakeApi::FakeApi(loop::Loop& loop) : loop_(loop) {
  auto listener = loop::Listener::Open(
      loop, base::ParseAddress("127.0.0.1:0").value(), {},
      [this](int fd, std::string peer) {
        connections_.push_back(
            std::make_unique<Connection>(*this, loop::AdoptSocket(loop_, fd, std::move(peer))));
      },
      [](const base::Error&) {});
  CHECK(listener.ok(), "a loopback port can be bound");
  listener_ = std::move(listener).value();
}

FakeApi::~FakeApi() = default;

FakeApi::Answer FakeApi::Problem(int status, const std::string& code, const std::string& detail) {
  return {status, "{\"type\":\"urn:leasehold:problem:" + code + "\",\"title\":\"x\",\"status\":" +
                      std::to_string(status) + ",\"detail\":" + base::JsonQuote(detail) + "}"};
}

std::string FakeApi::url() const { return "http://" + listener_->bound().ToString(); }

size_t FakeApi::Count(const std::string& line) const {
  return static_cast<size_t>(std::count_if(requests_.begin(), requests_.end(),
                                           [&](const Request& r) { return r.line == line; }));
}

FakeApi::Answer FakeApi::Next(const std::string& line) {
  const auto at = answers_.find(line);
  if (at == answers_.end()) return Problem(404, "not_found", "nothing is scripted for " + line);
  const size_t turn = asked_[line]++;
  return at->second[std::min(turn, at->second.size() - 1)];
}

}  // namespace leasehold::cli
