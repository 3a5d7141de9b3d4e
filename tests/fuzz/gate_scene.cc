#include "fuzz/gate_scene.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "fuzz/gate_rules.h"
#include "fuzz/gate_script.h"
#include "fuzz/http_reference.h"
#include "gate/peer_hello.h"

namespace leasehold::fuzz {
namespace {

using lease::Valve;
using testing::RawSocket;

// Enough for every state of two connections; more only costs speed.
constexpr size_t kStepsMax = 32;
// Turns of the loop without any news after which nothing moves any more: a byte takes one to be
// read and sent on, a connect one more, work that was posted one more.
constexpr int kQuietTurns = 3;
constexpr int kTurnsMax = 400;
// How often a millisecond is waited for the kernel.
constexpr int kWaitsMax = 100;
// A scene has at most this many descriptors; the lowest are taken first.
constexpr int kDescriptors = 96;
constexpr size_t kNobody = SIZE_MAX;

base::Address Loopback() {
  base::Address address;
  address.kind = base::Address::Kind::kTcp;
  address.host = "127.0.0.1";
  return address;
}

// Of include/net/tcp_states.h, which is the kernel's own.
constexpr uint8_t kSynSent = 2;
constexpr uint8_t kSynReceived = 3;
constexpr uint8_t kListening = 10;

// One end of a TCP connection.
struct TcpEnd {
  uint16_t own_port = 0;
  uint16_t peer_port = 0;
  uint64_t sent = 0;
  uint64_t received = 0;
  uint8_t state = 0;
  uint32_t unacked = 0;
};

uint16_t PortOf(int fd, int (*name_of)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  return name_of(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? ntohs(address.sin_port)
                                                                        : uint16_t{0};
}

std::vector<TcpEnd> TcpEnds() {
  std::vector<TcpEnd> ends;
  for (int fd = 3; fd < kDescriptors; ++fd) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    ends.push_back({PortOf(fd, getsockname), PortOf(fd, getpeername),
                    info.tcpi_bytes_sent - info.tcpi_bytes_retrans, info.tcpi_bytes_received,
                    info.tcpi_state, info.tcpi_unacked});
  }
  return ends;
}

// On a busy machine loopback delivers later than a send returns. Both ends are in this process: is
// there one to which something is on its way?
bool AnythingUnderWay() {
  const std::vector<TcpEnd> ends = TcpEnds();
  return std::any_of(ends.begin(), ends.end(), [&ends](const TcpEnd& end) {
    if (end.state == kSynSent || end.state == kSynReceived) return true;
    if (end.state == kListening) return end.unacked > 0;  // who waits to be accepted
    return std::any_of(ends.begin(), ends.end(), [&end](const TcpEnd& other) {
      return other.own_port == end.peer_port && other.peer_port == end.own_port &&
             other.received < end.sent;
    });
  });
}

}  // namespace

GateScene::GateScene() : app_(Loopback()), holder_(Loopback()) {
  for (auto& kind : slots_) {
    for (size_t& slot : kind) slot = kNobody;
  }
  options_.name = "web";
  options_.listen = options_.peer_listen = Loopback();
  options_.upstream = app_.address();
  options_.standby = gate::StandbyPolicy::kHold;
  options_.hold_timeout = base::Duration::Seconds(30);
  // So small that inputs reach them.
  options_.head_bytes_max = 1024;
  options_.target_bytes_max = 256;
  options_.body_bytes_max = 1024;
  options_.buffer_bytes = 4096;
  options_.max_connections = 8;
  options_.max_held = 2;
  options_.upstream_idle_max = 2;
}

GateScene::~GateScene() = default;

void GateScene::Build() {
  gate_ = gate::MakeHttpGate(
      options_, gate::Host{loop_, *log_, metrics_, permit_.permit, "orders", "node-1",
                           std::string(kProcess), base::Duration::Seconds(10), [] {}, [] {}});
  CHECK(gate_->Start().ok(), "a scene's gate cannot listen");
}

void GateScene::Play(std::string_view script) {
  std::vector<ScriptStep> steps = ParseScript(script, kStepsMax);
  size_t first = 0;
  for (; first < steps.size(); ++first) {
    if (steps[first].word == "reject") {
      options_.standby = gate::StandbyPolicy::kReject;
    } else if (steps[first].word == "forward") {
      options_.standby = gate::StandbyPolicy::kForward;
    } else if (steps[first].word == "finish") {
      options_.on_loss = gate::OnLoss::kFinish;
    } else {
      break;
    }
  }
  Build();
  GateRules rules(*this);
  for (size_t i = first; i < steps.size(); ++i) {
    rules.BeforeStep();
    for (SceneClient& client : clients_) client.seen_before = client.socket->received().size();
    Step(steps[i].word, steps[i].bytes);
    Settle();
    rules.AfterStep();
  }
  End();
}

void GateScene::Step(std::string_view word, std::string_view bytes) {
  if (word.empty() || Word(word) || Record(word)) return;
  const bool numbered =
      word.size() == 2 && word[1] >= '0' && word[1] < static_cast<char>('0' + kSlots);
  if (numbered) return Client(word, bytes);
  const bool holder = word[0] == 'h';
  Other(holder && word.size() > 1 ? word.substr(1) : word, bytes, holder);
}

// The application, or the holder.
void GateScene::Other(std::string_view word, std::string_view bytes, bool holder) {
  SceneUpstream* const newest = Newest(holder);
  if (word == "ok") {
    AnswerAll(holder);
  } else if (word == (holder ? "h" : "a") && newest != nullptr) {
    newest->by_hand = true;
    newest->sent += bytes.substr(0, newest->socket->Send(bytes));
  } else if (word == "x" && newest != nullptr) {
    newest->closed = true;
    newest->socket->ShutdownWrite();
  } else if (word == "k" && newest != nullptr) {
    newest->closed = true;
    newest->socket->CloseWithReset();
  }
}

bool GateScene::Record(std::string_view word) {
  gate::Peer peer;
  if (word == "holder" || word == "successor" || word == "stepping") {
    peer.address = holder_.address();
    peer.process_id = word == "successor" ? "process-3" : "process-2";
    peer.token = word == "successor" ? 9 : 8;
    peer.draining = word == "stepping";
  } else if (word != "nobody") {
    return false;
  }
  gate_->SetPeer(peer);
  return true;
}

// What the engine says, with a permit to match, as the driver does it: the permit first.
bool GateScene::Word(std::string_view word) {
  if (word == "open") {
    if (state_.valve == Valve::kClosed || state_.expired) ++state_.token;
    if (state_.expired) SetValve(Valve::kClosed, true);  // a term that is over comes to no life
    state_.expired = false;
    SetValve(Valve::kOpen, false);
  } else if (word == "hold" || word == "drain") {
    if (!state_.acts()) return true;  // only a holder does
    SetValve(word == "hold" ? Valve::kHolding : Valve::kDraining, false);
  } else if (word == "close" || word == "lost") {
    SetValve(Valve::kClosed, word == "lost");
    state_.expired = false;
  } else if (word == "expire") {
    if (!state_.acts()) return true;
    state_.expired = true;
    permit_.ExpireAt(base::MonoTime());
  } else {
    return false;
  }
  return true;
}

void GateScene::SetValve(Valve valve, bool lost) {
  state_.valve = valve;
  permit_.Set(valve, state_.expired ? base::MonoTime() : base::MonoTime::Never(), state_.token);
  const base::MonoTime end = loop::Loop::Now() + base::Duration::Seconds(20);
  CHECK(gate_->SetValve({valve, lost, end, "requested"}).ok(), "a gate that listens cannot open");
}

void GateScene::Client(std::string_view word, std::string_view bytes) {
  const bool peer = word[0] == 'p' || word[0] == 'f' || word[0] == 'r';
  size_t& slot = slots_[peer ? 1 : 0][word[1] - '0'];
  const bool sends = word[0] == 'c' || word[0] == 'p';
  if (slot == kNobody || (sends && clients_[slot].socket->over())) {
    if (!sends) return;
    const gate::GateStatus status = gate_->status();
    auto address = base::ParseAddress(peer ? status.peer_listen : status.listen);
    slot = clients_.size();
    clients_.push_back({RawSocket::Connect(*address), peer, {}, 0});
  }
  SceneClient& client = clients_[slot];
  if (sends) {
    client.sent += bytes.substr(0, client.socket->Send(bytes));
  } else if (word[0] == 'e' || word[0] == 'f') {
    client.socket->ShutdownWrite();
  } else if (word[0] == 'q' || word[0] == 'r') {
    client.socket->CloseWithReset();
    slot = kNobody;
  }
}

SceneUpstream* GateScene::Newest(bool holder) {
  for (size_t i = upstreams_.size(); i-- > 0;) {
    SceneUpstream& upstream = upstreams_[i];
    if (upstream.holder == holder && !upstream.closed && !upstream.socket->over()) return &upstream;
  }
  return nullptr;
}

void GateScene::AnswerAll(bool holder) {
  for (SceneUpstream& upstream : upstreams_) {
    if (upstream.holder == holder && !upstream.by_hand && !upstream.closed) AnswerOn(upstream);
  }
}

// One orderly answer for each whole request without one, naming what it answers. A holder says the
// admission first where it is asked for.
void GateScene::AnswerOn(SceneUpstream& upstream) {
  std::string_view rest = upstream.socket->received();
  std::string out;
  for (size_t index = 0;; ++index) {
    RefMessage request;
    const RefRead read = ReadReference(rest, RefKind::kRequest, false, &request);
    if (!request.head_done) break;
    std::string greeting;
    (void)request.Count("lease-peer", &greeting);
    if (greeting.ends_with(gate::kPeerSay) && index >= upstream.admitted) {
      out += "HTTP/1.1 199 Admitted\r\nLease-Peer: admitted\r\n\r\n";
      upstream.admitted = index + 1;
    }
    if (read != RefRead::kMessage) break;
    rest.remove_prefix(request.size);
    if (index < upstream.answered) continue;
    const std::string name = request.method + " " + request.target;
    out += "HTTP/1.1 200 OK\r\nX-Answers: " + name + "\r\n";
    if (upstream.holder) out += "Lease-Peer: answer\r\n";
    out += "Content-Length: " + std::to_string(name.size()) + "\r\n\r\n";
    if (request.method != "HEAD") out += name;
    ++upstream.answered;
  }
  upstream.sent += out;
  (void)upstream.socket->Send(out);
}

void GateScene::Settle() {
  int quiet = 0;
  int waits = 0;
  for (int turn = 0; turn < kTurnsMax && quiet < kQuietTurns; ++turn) {
    loop_.Post([] {});  // the turn does not wait
    loop_.RunOnce();
    quiet = Look() ? 0 : quiet + 1;
    if (quiet < kQuietTurns || waits >= kWaitsMax || !AnythingUnderWay()) continue;
    ++waits;
    quiet = 0;
    (void)poll(nullptr, 0, 1);
  }
}

bool GateScene::Accept(testing::RawServer& server, bool holder) {
  auto socket = server.Accept();
  if (socket == nullptr) return false;
  SceneUpstream& upstream = upstreams_.emplace_back();
  upstream.socket = std::move(socket);
  upstream.holder = holder;
  return true;
}

bool GateScene::Look() {
  bool news = false;
  while (Accept(app_, false) || Accept(holder_, true)) news = true;
  for (SceneUpstream& upstream : upstreams_) news |= upstream.socket->Poll();
  for (SceneClient& client : clients_) news |= client.socket->Poll();
  return news;
}

// Whoever spoke to the gate goes: then nothing of it may be left, or a drain would never end.
void GateScene::End() {
  for (SceneClient& client : clients_) client.socket->CloseWithReset();
  for (SceneUpstream& upstream : upstreams_) upstream.socket->CloseWithReset();
  gate_->SetPeer({});
  const base::MonoTime end = loop::Loop::Now() + base::Duration::Seconds(5);
  do {
    Settle();  // resets are acknowledged by nobody
  } while (gate_->status().connections > 0 && loop::Loop::Now() < end);
  const gate::GateStatus status = gate_->status();
  CHECK(status.connections == 0, "a connection is left when all have gone");
  CHECK(status.in_flight == 0, "work is in flight when all have gone");
  CHECK(status.forwarding == 0, "work is forwarded when all have gone");
  CHECK(status.held == 0, "a request is held when all have gone");
  gate_.reset();
}

}  // namespace leasehold::fuzz
