// GateScene: the whole http gate on real loopback sockets in one loop, with clients, other sidecars
// the application and the
// holder's gate played from a script (gate_script.h). After each step the loop runs until
// nothing moves, and then everything that every side has seen so far is looked at (gate_rules.h).
// The clock is the real one, and no time-out of the gate is short enough to be met: what follows
// from time is the unit tests'. One input, one scene; nothing is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gate/gate.h"
#include "lib/permit_for_test.h"
#include "lib/raw_socket.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "observe/metrics.h"

namespace leasehold::fuzz {

// A connection to the gate, from a client or from another sidecar.
struct SceneClient {
  std::unique_ptr<testing::RawSocket> socket;
  bool peer = false;
  std::string sent;
  size_t seen_before = 0;  // of what it received, when the step began
};

// A connection of the gate to the application, or to the holder's gate.
struct SceneUpstream {
  std::unique_ptr<testing::RawSocket> socket;
  bool holder = false;
  bool by_hand = false;  // it was sent bytes of the script: no orderly answers any more
  bool closed = false;
  size_t admitted = 0;  // of a holder: requests whose admission was said in order
  size_t answered = 0;  // requests on it with an orderly answer
  std::string sent;
  size_t requests = 0;  // heads seen on it
  bool spoilt = false;  // it said more than it was asked for
};

struct SceneState {
  lease::Valve valve = lease::Valve::kClosed;
  bool expired = false;
  uint64_t token = 6;
  bool admits() const { return valve == lease::Valve::kOpen && !expired; }
  bool acts() const { return valve != lease::Valve::kClosed && !expired; }
};

class GateScene {
 public:
  GateScene();
  ~GateScene();
  GateScene(const GateScene&) = delete;
  GateScene& operator=(const GateScene&) = delete;

  void Play(std::string_view script);

  const std::vector<SceneClient>& clients() const { return clients_; }
  std::vector<SceneUpstream>& upstreams() { return upstreams_; }
  const std::vector<SceneUpstream>& upstreams() const { return upstreams_; }
  const SceneState& state() const { return state_; }
  uint64_t in_flight() const { return gate_->status().in_flight; }
  bool forwards() const { return options_.forwards(); }
  bool finishes_on_loss() const { return options_.on_loss == gate::OnLoss::kFinish; }
  static constexpr std::string_view kProcess = "process-1";

 private:
  void Build();
  void Step(std::string_view word, std::string_view bytes);
  void Client(std::string_view word, std::string_view bytes);
  void Other(std::string_view word, std::string_view bytes, bool holder);
  bool Record(std::string_view word);
  bool Word(std::string_view word);
  void SetValve(lease::Valve valve, bool lost);
  void AnswerAll(bool holder);
  void AnswerOn(SceneUpstream& upstream);
  SceneUpstream* Newest(bool holder);
  bool Accept(testing::RawServer& server, bool holder);
  void Settle();
  bool Look();
  void End();

  static constexpr size_t kSlots = 3;

  loop::Loop loop_;
  std::unique_ptr<observe::Log> log_ = observe::Log::Silent();
  observe::Metrics metrics_;
  lease::PermitForTest permit_;
  gate::Options options_;
  testing::RawServer app_;
  testing::RawServer holder_;
  std::unique_ptr<gate::Gate> gate_;
  SceneState state_;
  std::vector<SceneClient> clients_;
  std::vector<SceneUpstream> upstreams_;
  size_t slots_[2][kSlots];  // of clients and of sidecars: who sends under that number now
};

}  // namespace leasehold::fuzz
