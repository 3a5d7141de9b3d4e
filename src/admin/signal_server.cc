#include "admin/signal_server.h"

#include <algorithm>
#include <list>
#include <set>
#include <utility>
#include <vector>

#include "admin/signal_client.h"
#include "admin/signal_ops.h"
#include "admin/views_json.h"
#include "base/address.h"
#include "base/json_writer.h"
#include "loop/listener.h"
#include "loop/stream.h"

namespace leasehold::admin {
namespace {

// One line a minute about a condition that lasts: enough to be found, too little to fill a disk.
constexpr base::Duration kLogInterval = base::Duration::Seconds(60);
constexpr unsigned kSocketMode = 0660;  // DESIGN 5

class SignalServerImpl final : public SignalServer, private SignalRegistry {
 public:
  SignalServerImpl(loop::Loop& loop, const SignalOptions& options, Control& control,
                   observe::EventBus& events, observe::Log& log)
      : loop_(loop),
        options_(options),
        control_(control),
        events_(events),
        log_(log),
        refused_limit_(kLogInterval),
        dropped_limit_(kLogInterval),
        trouble_limit_(kLogInterval),
        ops_(control, *this, log),
        owner_{
            .on_line = [this](SignalClient& client,
                              std::string_view line) { ops_.Handle(client, line); },
            .on_ended = [this](SignalClient& client) { Leave(client); },
            .on_gone = [this](SignalClient& client, std::string_view why) { Gone(client, why); }} {}

  ~SignalServerImpl() override {
    if (subscription_ != 0) events_.Unsubscribe(subscription_);
  }

  base::Status Listen() {
    const auto address = base::ParseAddress("unix:" + options_.socket);
    if (!address.ok()) return Named(address.error());
    loop::ListenOptions listen;
    listen.unix_mode = kSocketMode;
    auto listener = loop::Listener::Open(
        loop_, *address, listen, [this](int fd, const std::string& peer) { Accept(fd, peer); },
        [this](const base::Error& error) {
          uint64_t suppressed = 0;
          if (!trouble_limit_.Allow(loop_.CachedNow(), &suppressed)) return;
          log_.Warn("signal.accept_failed", error.message, {{"suppressed", suppressed}});
        });
    if (!listener.ok()) return Named(listener.error());
    listener_ = std::move(listener).value();
    subscription_ = events_.Subscribe([this](const observe::Event& event) { OnEvent(event); });
    return {};
  }

  bool AllDrained(const std::string& lease, uint64_t token) const override {
    return WaitingFor(lease, token) == 0;
  }
  size_t clients() const override { return clients_.size(); }

 private:
  base::Error Named(const base::Error& error) const {
    return {error.code, "signal.socket = \"" + options_.socket + "\": " + error.message};
  }

  void Accept(int fd, const std::string& peer) {
    std::unique_ptr<loop::Stream> stream = loop::AdoptSocket(loop_, fd, peer);
    const int uid = stream->peer_uid();
    const std::vector<int64_t>& allowed = options_.allow_uids;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), uid) == allowed.end()) {
      return Refuse(*stream, "refused",
                    "user id " + std::to_string(uid) + " is not in signal.allow_uids");
    }
    if (clients_.size() >= options_.max_clients) {
      return Refuse(*stream, "limit",
                    "signal.max_clients = " + std::to_string(options_.max_clients) +
                        " clients are connected already");
    }
    auto client = std::make_shared<SignalClient>(loop_, owner_, std::move(stream));
    clients_.push_back(client);
    client->Start();
    client->Send(HelloLine(control_));
  }

  // One line and a close: what is with the kernel stays readable.
  void Refuse(loop::Stream& stream, std::string_view code, const std::string& why) {
    stream.Write(SignalErrorLine(code, why) + "\n");
    uint64_t suppressed = 0;
    if (!refused_limit_.Allow(loop_.CachedNow(), &suppressed)) return;
    log_.Warn("signal.refused", why, {{"suppressed", suppressed}});
  }

  void Gone(SignalClient& client, std::string_view why) {
    const auto at = std::find_if(clients_.begin(), clients_.end(),
                                 [&](const auto& entry) { return entry.get() == &client; });
    if (at == clients_.end()) return;
    const std::shared_ptr<SignalClient> keep = *at;
    clients_.erase(at);
    Leave(client);
    uint64_t suppressed = 0;
    if (why.empty() || !dropped_limit_.Allow(loop_.CachedNow(), &suppressed)) return;
    log_.Warn("signal.dropped", "a client of the signal socket is gone: " + std::string(why),
              {{"suppressed", suppressed}});
  }

  // One that cannot speak any more cannot say drained either: it counts as drained.
  void Leave(SignalClient& client) {
    if (!client.registered()) return;
    for (const LeaseView& lease : control_.leases()) {
      if (client.RegisteredFor(lease.view.lease)) Changed(lease.view.lease);
    }
    client.Unregister();
  }

  void OnEvent(const observe::Event& event) {
    if (event.name == "lease.draining") {
      uint64_t& draining = draining_[event.lease];
      // What was drained before a drain that was called off is not drained for the next one.
      if (draining != event.token) {
        for (const auto& client : clients_) client->ForgetDrained(event.lease);
      }
      draining = event.token;
    } else if (event.name == "lease.restored" || event.name == "lease.acquired" ||
               event.name == "lease.released" || event.name == "lease.lost") {
      draining_.erase(event.lease);
    }
    const std::string line = observe::EventJson(event);
    const auto snapshot = clients_;  // a slow one leaves the list while it is told
    for (const auto& client : snapshot) client->Send(line);
  }

  size_t WaitingFor(const std::string& lease, uint64_t token) const override {
    return static_cast<size_t>(
        std::count_if(clients_.begin(), clients_.end(), [&](const auto& client) {
          return client->RegisteredFor(lease) && !client->HasDrained(lease, token);
        }));
  }

  size_t DrainedByName(const std::string& lease, uint64_t token, std::string_view name,
                       int uid) override {
    size_t named = 0;
    for (const auto& client : clients_) {
      if (client->name() != name || client->uid() != uid || !client->RegisteredFor(lease)) continue;
      client->SetDrained(lease, token);
      ++named;
    }
    return named;
  }

  // Told from the loop, once per turn: this may be the middle of an event that the engine's driver
  // is publishing, and what it leads to must not happen inside that.
  void Changed(const std::string& lease) override {
    const bool posted = !changed_.empty();
    changed_.insert(lease);
    if (posted) return;
    loop_.Post([this, alive = std::weak_ptr<bool>(alive_)] {
      if (alive.expired()) return;
      for (const std::string& name : std::exchange(changed_, {})) control_.DrainProgress(name);
    });
  }

  loop::Loop& loop_;
  const SignalOptions options_;
  Control& control_;
  observe::EventBus& events_;
  observe::Log& log_;
  observe::RateLimit refused_limit_;
  observe::RateLimit dropped_limit_;
  observe::RateLimit trouble_limit_;
  SignalOps ops_;
  SignalClient::Owner owner_;
  uint64_t subscription_ = 0;
  std::map<std::string, uint64_t> draining_;  // lease -> token of the drain under way
  std::set<std::string> changed_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::list<std::shared_ptr<SignalClient>> clients_;
  std::unique_ptr<loop::Listener> listener_;
};

}  // namespace

base::Result<std::unique_ptr<SignalServer>> SignalServer::Start(loop::Loop& loop,
                                                                const SignalOptions& options,
                                                                Control& control,
                                                                observe::EventBus& events,
                                                                observe::Log& log) {
  auto server = std::make_unique<SignalServerImpl>(loop, options, control, events, log);
  if (const base::Status status = server->Listen(); !status.ok()) return status.error();
  return std::unique_ptr<SignalServer>(std::move(server));
}

}  // namespace leasehold::admin
