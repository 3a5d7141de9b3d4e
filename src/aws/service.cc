#include "aws/service.h"

#include <utility>

#include "aws/service_clock.h"
#include "base/check.h"
#include "base/text.h"
#include "client/http_pool.h"
#include "crypto/digest.h"
#include "loop/timer.h"
#include "proto/sigv4.h"

namespace leasehold::aws {
namespace {

namespace sigv4 = proto::sigv4;
using base::Error;
using base::ErrorCode;
using base::MonoTime;

// Two services behind one name whose clocks differ, or a clock that is set to and fro, would write
// a line for every answer.
constexpr base::Duration kClockLineInterval = base::Duration::Seconds(10);

client::HttpPoolOptions PoolOptions(const Endpoint& endpoint, const ServiceLimits& limits) {
  client::HttpPoolOptions options;
  options.address = endpoint.address;
  if (endpoint.tls) {
    options.tls.emplace();
    options.tls->server_name = endpoint.address.host;
  }
  options.connect_timeout = limits.connect_timeout;
  options.idle_max = limits.idle_max;
  options.connections_max = limits.connections_max;
  return options;
}

// No answer may bring a secret into a message, whatever the service repeats.
void Mask(std::string& text, const std::string& secret) {
  constexpr size_t kShortest = 8;  // shorter ones are no secrets of AWS's, but would match anything
  if (secret.size() < kShortest) return;
  for (size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
    text.replace(at, secret.size(), "***");
  }
}

std::string ClockSentence(base::Duration skew, const std::string& service) {
  const int64_t seconds = skew.millis() / 1000;
  // A Date has whole seconds, and is measured half a round trip off.
  if (seconds >= -1 && seconds <= 1) return "this machine's clock agrees with that of " + service;
  return "this machine's clock is " +
         base::FormatDuration(base::Duration::Seconds(seconds < 0 ? -seconds : seconds)) +
         (seconds < 0 ? " ahead of" : " behind") + " that of " + service +
         ": requests are signed for the service's time; set the clock (NTP)";
}

bool IsCredentialTrouble(Trouble trouble) {
  return trouble == Trouble::kExpired || trouble == Trouble::kBadCredentials;
}

}  // namespace

std::string_view Response::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (base::EqualsIgnoreCase(key, name)) return value;
  }
  return {};
}

struct Service::Impl {
  class SignedCall;

  Impl(loop::Loop& the_loop, Endpoint the_endpoint, std::shared_ptr<CredentialsProvider> provider,
       const ServiceLimits& limits, observe::Log& the_log)
      : loop(the_loop),
        endpoint(std::move(the_endpoint)),
        name(endpoint.service + " at " + endpoint.ToString()),
        credentials(std::move(provider)),
        calls_max(limits.connections_max),
        log(the_log),
        pool(loop, PoolOptions(endpoint, limits)) {
    CHECK(credentials != nullptr, "a service needs a credentials provider");
  }
  ~Impl();

  client::HttpRequest Sign(Request request, const Credentials& with);
  // True: it changed.
  bool NoteClock(const ServiceClock::Answer& answer);

  loop::Loop& loop;
  const Endpoint endpoint;
  const std::string name;  // "sqs at https://...": for messages
  const std::shared_ptr<CredentialsProvider> credentials;
  const size_t calls_max;  // also those that wait for credentials
  observe::Log& log;
  observe::RateLimit clock_lines{kClockLineInterval};
  ServiceClock clock;
  sigv4::Signer signer;
  client::HttpPool pool;
  std::vector<SignedCall*> calls;  // those that are not over
};

class Service::Impl::SignedCall final : public Call {
 public:
  SignedCall(Impl& service, Request request, std::function<void(base::Result<Response>)> done)
      : service_(&service),
        request_(std::move(request)),
        done_(std::move(done)),
        started_(loop::Loop::Now()),
        self_(std::make_shared<SignedCall*>(this)),
        deadline_(service.loop, [this] { OnDeadline(); }) {
    slot_ = service_->calls.size();
    service_->calls.push_back(this);
    if (slot_ >= service_->calls_max) {
      refused_ = "all " + std::to_string(service_->calls_max) +
                 " connections are in use; this limits how many calls may be out at a time";
      deadline_.StartAfter(base::Duration::Zero());  // told later, from the loop
      return;
    }
    deadline_.StartAt(started_ + request_.timeout);
    service_->credentials->Get([weak = std::weak_ptr(self_)](base::Result<SharedCredentials> got) {
      if (const auto self = weak.lock()) (*self)->OnCredentials(std::move(got));
    });
  }
  ~SignedCall() override {
    if (service_ != nullptr) Leave();
  }

  // The service is going: nothing more happens.
  void Orphan() {
    Leave();
    done_ = nullptr;
  }

 private:
  void OnDeadline();
  void OnCredentials(base::Result<SharedCredentials> credentials);
  void OnAnswer(base::Result<client::HttpResponse> answer);
  Response Understand(client::HttpResponse answer);
  void NoteTrouble(Response& response);
  void Leave();
  void Finish(base::Result<Response> result);

  Impl* service_;  // nullptr: over
  Request request_;
  std::function<void(base::Result<Response>)> done_;
  const MonoTime started_;
  std::string refused_;  // why the call is not made
  MonoTime sent_;
  size_t slot_ = 0;  // in the service's calls
  SharedCredentials used_;
  std::shared_ptr<SignedCall*> self_;  // gone: credentials that come are nobody's
  loop::Timer deadline_;               // until there are credentials; then the pool has one
  std::unique_ptr<client::HttpCall> http_;
};

void Service::Impl::SignedCall::OnDeadline() {
  if (!refused_.empty()) {
    return Finish(Error{ErrorCode::kLimit, service_->name + ": " + refused_});
  }
  Finish(Error{ErrorCode::kRefused, service_->name +
                                        ": nothing was sent: no credentials came within " +
                                        base::FormatDuration(request_.timeout) + " from " +
                                        service_->credentials->Describe()});
}

void Service::Impl::SignedCall::OnCredentials(base::Result<SharedCredentials> got) {
  deadline_.Stop();
  self_.reset();
  if (!got || *got == nullptr) {
    const std::string why = got ? "there are none" : got.error().message;
    return Finish(
        Error{ErrorCode::kRefused, service_->name + ": nothing was sent: no credentials: " + why});
  }
  used_ = std::move(*got);
  sent_ = loop::Loop::Now();
  const bool idempotent = request_.idempotent;
  client::HttpRequest request = service_->Sign(std::move(request_), *used_);
  request.started = started_;
  http_ = service_->pool.Start(
      std::move(request), idempotent,
      [this](base::Result<client::HttpResponse> answer) { OnAnswer(std::move(answer)); });
}

void Service::Impl::SignedCall::OnAnswer(base::Result<client::HttpResponse> answer) {
  if (!answer) return Finish(answer.error());
  Response response = Understand(std::move(*answer));
  if (response.error) NoteTrouble(response);
  Finish(std::move(response));
}

Response Service::Impl::SignedCall::Understand(client::HttpResponse answer) {
  Response response;
  response.status = answer.status;
  response.headers = std::move(answer.headers);
  response.body = std::move(answer.body);
  if (response.status >= 400) {
    response.error = ParseApiError(response.status, response.headers, response.body);
    Mask(response.error->message, used_->key.session_token);
    Mask(response.error->message, used_->key.secret_access_key);
  }
  const std::optional<int64_t> date = sigv4::ParseHttpDate(response.Header("Date"));
  if (!date) return response;
  response.server_unix_ms = *date * 1000;
  const bool refused = response.error && response.error->trouble == Trouble::kClockSkew;
  const bool corrected =
      service_->NoteClock({*date, loop::Loop::WallNow(), loop::Loop::Now() - sent_, refused});
  // Signed for another time it could not have been accepted, whatever the service calls that.
  if (corrected && response.error && response.error->trouble == Trouble::kBadCredentials) {
    response.error->trouble = Trouble::kClockSkew;
  }
  return response;
}

void Service::Impl::SignedCall::NoteTrouble(Response& response) {
  if (IsCredentialTrouble(response.error->trouble)) service_->credentials->NoteRefused(used_);
}

void Service::Impl::SignedCall::Leave() {
  deadline_.Stop();
  self_.reset();
  http_.reset();
  std::vector<SignedCall*>& all = service_->calls;
  CHECK(slot_ < all.size() && all[slot_] == this, "a call is in its service's table");
  all[slot_] = all.back();
  all[slot_]->slot_ = slot_;
  all.pop_back();
  service_ = nullptr;
}

// The last thing a call does: `done` may destroy it, and the service.
void Service::Impl::SignedCall::Finish(base::Result<Response> result) {
  Leave();
  const auto done = std::move(done_);
  done(std::move(result));
}

Service::Impl::~Impl() {
  while (!calls.empty()) calls.back()->Orphan();
}

client::HttpRequest Service::Impl::Sign(Request request, const Credentials& with) {
  client::HttpRequest http;
  http.name = name;
  http.method = std::move(request.method);
  const std::string path = endpoint.base_path + (request.path.empty() ? "/" : request.path);
  http.target = request.query.empty() ? path : path + "?" + request.query;
  http.host_header = endpoint.host_header;
  http.headers = std::move(request.headers);
  std::erase_if(http.headers, [](const auto& h) { return sigv4::IsSignature(h.first); });
  http.body = std::move(request.body);
  http.timeout = request.timeout;
  http.body_bytes_max = request.body_bytes_max;

  std::vector<sigv4::Header> headers = http.headers;
  headers.emplace_back("Host", endpoint.host_header);
  const std::string digest = crypto::Sha256Hex(http.body);
  sigv4::Request what;
  what.method = http.method;
  what.path = path;
  what.query = request.query;
  what.headers = headers;
  what.payload_sha256_hex = digest;
  if (endpoint.service == "s3") what.path_form = sigv4::PathForm::kS3;
  for (sigv4::Header& header : signer.Sign(what, {endpoint.region, endpoint.service}, with.key,
                                           clock.UnixSeconds(loop::Loop::WallNow()))) {
    http.headers.push_back(std::move(header));
  }
  return http;
}

bool Service::Impl::NoteClock(const ServiceClock::Answer& answer) {
  const base::Duration before = clock.skew();
  if (!clock.Note(answer)) return false;
  uint64_t suppressed = 0;
  if (!clock_lines.Allow(loop::Loop::Now(), &suppressed)) return true;
  const base::Duration skew = clock.skew();
  const observe::Fields fields = {{"service", endpoint.service},
                                  {"endpoint", endpoint.ToString()},
                                  {"clock_skew_ms", skew.millis()},
                                  {"before_ms", before.millis()},
                                  {"suppressed", suppressed}};
  log.Warn("aws.clock_corrected", ClockSentence(skew, name), fields);
  return true;
}

Service::Service(loop::Loop& loop, Endpoint endpoint,
                 std::shared_ptr<CredentialsProvider> credentials, const ServiceLimits& limits,
                 observe::Log& log)
    : impl_(
          std::make_unique<Impl>(loop, std::move(endpoint), std::move(credentials), limits, log)) {}

Service::~Service() = default;

std::unique_ptr<Call> Service::Start(Request request,
                                     std::function<void(base::Result<Response>)> done) {
  return std::make_unique<Impl::SignedCall>(*impl_, std::move(request), std::move(done));
}

const Endpoint& Service::endpoint() const { return impl_->endpoint; }
const CredentialsProvider& Service::credentials() const { return *impl_->credentials; }
base::Duration Service::clock_skew() const { return impl_->clock.skew(); }
size_t Service::connections() const { return impl_->pool.connections(); }

}  // namespace leasehold::aws
