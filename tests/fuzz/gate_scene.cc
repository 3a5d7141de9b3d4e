#include "fuzz/gate_scene.h"

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
constexpr int kTurnsMax = 200;
constexpr size_t kNobody = SIZE_MAX;

base::Address Loopback() {
  base::Address address;
  address.kind = base::Address::Kind::kTcp;
  address.host = "127.0.0.1";
  return address;
}

}  // namespace

GateScene::GateScene() : app_(Loopback()) {
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
  if (word.empty() || Word(word)) return;
  SceneUpstream* const newest = Newest();
  if (word == "ok") {
    AnswerAll();
  } else if (word == "a" && newest != nullptr) {
    newest->by_hand = true;
    newest->sent += bytes.substr(0, newest->socket->Send(bytes));
  } else if (word == "x" && newest != nullptr) {
    newest->closed = true;
    newest->socket->ShutdownWrite();
  } else if (word == "k" && newest != nullptr) {
    newest->closed = true;
    newest->socket->CloseWithReset();
  } else if (word.size() == 2 && word[1] >= '0' && word[1] < static_cast<char>('0' + kSlots)) {
    Client(word, bytes);
  }
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

SceneUpstream* GateScene::Newest() {
  for (size_t i = upstreams_.size(); i-- > 0;) {
    if (!upstreams_[i].closed && !upstreams_[i].socket->over()) return &upstreams_[i];
  }
  return nullptr;
}

void GateScene::AnswerAll() {
  for (SceneUpstream& upstream : upstreams_) {
    if (!upstream.by_hand && !upstream.closed) AnswerOn(upstream);
  }
}

// One orderly answer for each whole request without one, naming what it answers.
void GateScene::AnswerOn(SceneUpstream& upstream) {
  std::string_view rest = upstream.socket->received();
  RefMessage request;
  for (size_t index = 0;
       ReadReference(rest, RefKind::kRequest, false, &request) == RefRead::kMessage; ++index) {
    rest.remove_prefix(request.size);
    if (index < upstream.answered) continue;
    const std::string name = request.method + " " + request.target;
    std::string answer = "HTTP/1.1 200 OK\r\nX-Answers: " + name +
                         "\r\nContent-Length: " + std::to_string(name.size()) + "\r\n\r\n";
    if (request.method != "HEAD") answer += name;
    upstream.sent += answer;
    (void)upstream.socket->Send(answer);
    ++upstream.answered;
  }
}

void GateScene::Settle() {
  int quiet = 0;
  for (int turn = 0; turn < kTurnsMax && quiet < kQuietTurns; ++turn) {
    loop_.Post([] {});  // the turn does not wait
    loop_.RunOnce();
    quiet = Look() ? 0 : quiet + 1;
  }
}

bool GateScene::Look() {
  bool news = false;
  while (auto socket = app_.Accept()) {
    upstreams_.emplace_back().socket = std::move(socket);
    news = true;
  }
  for (SceneUpstream& upstream : upstreams_) news |= upstream.socket->Poll();
  for (SceneClient& client : clients_) news |= client.socket->Poll();
  return news;
}

// Whoever spoke to the gate goes: then nothing of it may be left, or a drain would never end.
void GateScene::End() {
  for (SceneClient& client : clients_) client.socket->CloseWithReset();
  for (SceneUpstream& upstream : upstreams_) upstream.socket->CloseWithReset();
  Settle();
  const gate::GateStatus status = gate_->status();
  CHECK(status.connections == 0, "a connection is left when all have gone");
  CHECK(status.in_flight == 0, "work is in flight when all have gone");
  CHECK(status.held == 0, "a request is held when all have gone");
  gate_.reset();
}

}  // namespace leasehold::fuzz
