// SimGate: a gate of a simulated process: the program's own GateFrame, GateCore, hold queue and
// peer route, with messages where the http gate has sockets and bytes. It does what http_gate.h
// does with a request, in one step where that one needs many: admit, hold, forward (a request that
// is not idempotent in two parts, its body only after the holder's gate admitted it), pass the
// answer on, cut.
//
// The first gate of a node (index 0) is inbound and the only one that may forward.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "gate/gate_frame.h"
#include "simulation/traffic.h"

namespace leasehold::simulation {

class Node;
class World;

class SimGate final : public gate::GateFrame {
 public:
  SimGate(World& world, Node& node, const Process& process, size_t index,
          const gate::Options& options, gate::Host host);
  ~SimGate() override = default;

  base::Status Start() override { return ListenForPeers(); }
  void Dies();  // the process ends: every connection is broken

  // ---- what arrives ----
  void Arrive(const Request& request);
  void ClientGone(const Request& request);
  void FromPeer(const PeerCall& call);
  void PeerBody(const PeerCall& call);
  void PeerGone(const PeerCall& call);
  void FromHolder(const PeerCall& call, PeerReply reply);

 private:
  struct Exchange : gate::HoldEntry {
    uint64_t number = 0;
    const Request* request = nullptr;
    gate::Ticket ticket;
    enum class Where { kHeld, kPeer, kBody, kApplication };
    Where where = Where::kHeld;
    bool was_held = false;
    // ---- forwarded to the holder's gate ----
    uint64_t attempt = 0;
    uint64_t generation = 0;
    std::string address;
    std::shared_ptr<bool> broken;  // the connection of this attempt
    bool probe = false;
    bool admitted = false;
    int lost_admissions = 0;
    // ---- from another sidecar ----
    std::optional<PeerCall> caller;
  };

  base::Status OnValve(const gate::ValveChange& change) override;
  void OnAccepted(int fd, std::string peer) override;
  void Serve(gate::HoldEntry& entry, gate::Ticket ticket) override;
  void Refuse(gate::HoldEntry& entry, gate::Refusal reason) override;
  void Forward(gate::HoldEntry& entry, bool probe) override;
  void OnPeerAccepted(int fd, std::string peer) override;
  void OnNewPeer() override {}
  void OnLeave() override {}
  uint64_t forwarding() const override;
  void CutTunnels() override;
  uint64_t connections() const override { return exchanges_.size(); }
  uint64_t bytes_to_upstream() const override { return 0; }
  uint64_t bytes_to_downstream() const override { return 0; }

  Exchange& Make(const Request& request);
  Exchange* Find(uint64_t number);
  Exchange* FindFrom(const PeerCall& call);
  void Route(Exchange& exchange, const gate::Decision& decision);
  void Admitted(Exchange& exchange);
  void ToApplication(Exchange& exchange);
  void HandOver(uint64_t number, uint64_t token);
  void ApplicationAnswered(uint64_t number, bool applied);
  void Send(Exchange& exchange, bool probe);
  void Patience(Exchange& exchange);
  void Silent(Exchange& exchange);
  void PeerFailed(Exchange& exchange, bool admission_lost, const char* why);
  void RouteAgain(Exchange& exchange);
  PeerCall CallOf(const Exchange& exchange) const;
  // The exchange is over: `kind` goes to whoever asked.
  void End(Exchange& exchange, AnswerFact::Kind kind);
  static bool MayHaveBeenDone(const Exchange& exchange);
  void Forget(Exchange& exchange);
  void CutAdmitted();

  World& world_;
  Node& node_;
  const Process& process_;
  const size_t index_;
  uint64_t numbers_ = 0;
  std::map<uint64_t, std::unique_ptr<Exchange>> exchanges_;
};

}  // namespace leasehold::simulation
