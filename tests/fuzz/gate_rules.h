// GateRules: what must hold of everything that clients, sidecars and the application of a GateScene
// have seen, looked at after each step, as the reference reader reads it off the wire.
//
// The application sees whole, unambiguous requests or the front of one, each with our stamp of the
// term that admitted it. Each is a request that somebody sent, with its body and no more of it than
// was sent; none is executed twice, save a second sending of an idempotent one whose body had not
// begun; none goes on a connection on which the application said more than it was asked for.
//
// A request reaches it first only while the gate admits. No byte does while the gate may not act,
// and none of its answers reaches a client then. A closed gate has nothing in flight.
//
// A client gets no more answers than it asked for (and one about what cannot be read), each whole
// or cut by a reset, never by an orderly end. An answer that names its request is that request's.
// No word between sidecars reaches a client.
//
// Nothing comes through the peer listener without the right greeting, and nothing with a greeting
// through the clients'. Each answer there bears one mark. With "say" nothing is passed on before
// something follows the head.
//
// What goes to the holder's gate is a client's, never another sidecar's, and bears our greeting and
// no other Lease-*. Before that gate has said its admission nothing but a head goes, unless the
// request is idempotent and has no body. What may have been executed there goes to nobody again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/gate_scene.h"
#include "fuzz/http_reference.h"

namespace leasehold::fuzz {

class GateRules {
 public:
  explicit GateRules(GateScene& scene) : scene_(scene) {}
  void BeforeStep() { application_bytes_ = ApplicationBytes(); }
  void AfterStep();

 private:
  // A request that somebody sent.
  struct Source {
    RefMessage message;
    bool whole = false;
    bool peer = false;
    bool more_than_head = false;  // something was sent behind its head
    bool taken = false;
  };
  // A request that the application, or the holder's gate, has seen.
  struct Arrived {
    RefMessage message;
    bool whole = false;
    bool at_holder = false;
    // It stands for its source alone: another of the kind would be a second execution.
    bool once = true;
  };
  using Number = std::pair<uint64_t, uint64_t>;  // token, sequence

  // `requests`: on this connection, the last of which is looked at.
  void CheckAtHolder(const SceneUpstream& upstream, const std::vector<RefMessage>& requests,
                     bool whole);
  size_t ApplicationBytes() const;
  std::vector<Source> SourcesOf(const SceneClient& client) const;
  void CollectArrived();
  void CheckArrived(const RefMessage& message, bool whole);
  static void CheckUpstream(SceneUpstream& upstream, const std::vector<RefMessage>& requests);
  void CheckSources(std::vector<std::vector<Source>>& sources) const;
  static bool IsOf(const Arrived& arrived, const Source& source);
  void CheckClient(const SceneClient& client, const std::vector<Source>& sources) const;
  void CheckAnswer(const SceneClient& client, const RefMessage& answer, const Source* source) const;
  bool NamesAreOurs() const;

  GateScene& scene_;
  size_t application_bytes_ = 0;
  std::map<Number, Arrived> arrived_;
  std::vector<Arrived> at_holder_;
  std::map<Number, bool> known_;
};

}  // namespace leasehold::fuzz
