#include "aws/source_http.h"

#include <optional>
#include <utility>

#include "base/text.h"

namespace leasehold::aws {
namespace {

// Credentials have some KiB: session tokens up to 4 KiB or so.
constexpr size_t kBodyBytesMax = size_t{64} * 1024;

}  // namespace

std::unique_ptr<client::HttpPool> MakePool(loop::Loop& loop, const Endpoint& endpoint) {
  client::HttpPoolOptions options;
  options.address = endpoint.address;
  if (endpoint.tls) {
    options.tls.emplace();
    options.tls->server_name = endpoint.address.host;
    options.tls->ca_file = endpoint.ca_file;
  }
  return std::make_unique<client::HttpPool>(loop, std::move(options));
}

HttpAsk::HttpAsk(loop::Loop& loop, client::HttpPool& pool, base::Random& random,
                 const HttpPolicy& policy, std::string name, Make make, Again again, Done done)
    : pool_(pool),
      random_(random),
      policy_(policy),
      name_(std::move(name)),
      make_(std::move(make)),
      again_(std::move(again)),
      done_(std::move(done)),
      pause_(loop, [this] { Start(); }) {
  Start();
}

void HttpAsk::Start() {
  ++attempt_;
  client::HttpRequest request = make_();
  request.timeout = policy_.timeout;
  request.body_bytes_max = kBodyBytesMax;
  target_ = base::Printable(request.target);
  call_ = pool_.Start(request, true, [this](base::Result<client::HttpResponse> answer) {
    OnAnswer(std::move(answer));
  });
}

void HttpAsk::OnAnswer(base::Result<client::HttpResponse> answer) {
  call_.reset();
  const bool again = !answer.ok() || again_(*answer);
  if (again && attempt_ < policy_.attempts) {
    const base::Duration pause = policy_.pause * (int64_t{1} << (attempt_ - 1));
    pause_.StartAfter(pause / 2 + random_.UpTo(pause));
    return;
  }
  const Done done = std::move(done_);
  if (answer.ok()) {
    done(std::move(answer));
    return;
  }
  std::string error = name_ + ": " + answer.error().message;
  // The path of a container's credentials is as good as a password, and a query may hold one.
  if (const size_t at = error.find(target_); at != std::string::npos) {
    error.erase(at, target_.size());
  }
  if (attempt_ > 1) error += " (" + std::to_string(attempt_) + " attempts)";
  done(base::Error{answer.error().code, std::move(error)});
}

bool IsPassing(const client::HttpResponse& response) {
  return response.status == 429 || response.status >= 500;
}

}  // namespace leasehold::aws
