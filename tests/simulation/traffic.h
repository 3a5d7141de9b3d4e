// Traffic: the clients, the applications and the ways between clients, gates, applications and
// resource. Clients send requests of two kinds at gates of random nodes: such that are not
// idempotent ("POST") and must be executed once at most, and such that are ("GET"). An application
// executes what reaches it after some time, whatever became of its sidecar meanwhile.
//
// Not here: admission, holding and forwarding (the program's own, sim_gate.h), and what is right
// (check_requests.cc, check_gates.cc).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "base/random.h"
#include "simulation/facts.h"
#include "simulation/fence.h"

namespace leasehold::simulation {

class World;
class Node;
class SimGate;

// What another sidecar's gate is sent, and how the answer finds back. `exchange` and `attempt` name
// the sender's side; answers for another attempt are of a connection that is gone.
struct PeerCall {
  int from = 0;  // node
  std::weak_ptr<bool> sender;
  uint64_t exchange = 0;
  uint64_t attempt = 0;
  const Request* request = nullptr;
  std::string process_id;  // whom it is meant for
  std::string address;     // and where
  // Of the connection that this attempt goes over. Once true, nothing passes any more.
  std::shared_ptr<bool> broken = std::make_shared<bool>(false);
};
enum class PeerReply { kAdmitted, kNotAdmitted, kDone, kShut, kReset };

class Traffic {
 public:
  explicit Traffic(World& world);

  void Schedule();
  TrueNs Leg();  // one way between any two of them

  // The gate's answer, on its way to the client.
  void Answer(const Request& request, AnswerFact::Kind kind);
  // To the application beside `process`; `done` there when it has answered, which says whether the
  // fenced resource let it.
  void ToApplication(const Process& process, const Request& request, uint64_t token,
                     std::function<void(bool applied)> done);
  // To the peer listener at `address`: a call, what follows it, and that the sender has gone.
  void Call(const std::string& address, PeerCall call);
  void Body(const std::string& address, PeerCall call);
  void Gone(const std::string& address, PeerCall call);
  void Reply(const PeerCall& call, PeerReply reply);
  bool Lives(const std::string& address) const;  // whoever listens there, and is not stopped
  // Is the process stopped between the look at the permit and the act? Then it is frozen now, and
  // what it was about to do happens when it wakes.
  bool StopsBetween() { return random_.Below(400) == 0; }

 private:
  void Next();
  void Send();
  void Arrive(const Request& request);
  TrueNs Work();
  void Answered(const PeerCall& call, PeerReply reply);
  // Does the connection to another gate break now? Both ends notice, each after a while.
  bool Breaks(const std::string& address, const PeerCall& call);
  void AtPeer(const std::string& address, const PeerCall& call,
              std::function<void(SimGate&)> arrives);

  World& world_;
  base::Random random_;
  base::Random breaks_;  // of Breaks alone
  TrueNs every_ = 0;     // mean time between two requests
  std::deque<Request> requests_;
  Fence fence_;
};

}  // namespace leasehold::simulation
