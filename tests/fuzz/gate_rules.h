// GateRules: what must hold of everything that clients, sidecars and the application of a GateScene
// have seen, looked at after each step. As one reads the wire with the reference reader:
//   the application sees whole, unambiguous requests or the front of one; each with our stamp of
//     the term that admitted it; each is a request that somebody sent, with its body (no more of it
//     than was sent), and no request is executed twice, save a second sending of an idempotent one
//     whose body had not begun;
//     and no request is sent on a connection on which it said more than it was asked for;
//   a request reaches it first only while the gate admits; no byte does while the gate may not act,
//     and none of an answer reaches a client then; a closed gate has nothing in flight;
//   a client gets no more answers than it asked for (and one about what cannot be read), each whole
//     or cut by a reset, never by an orderly end; an answer that names its request is that
//     request's; no word between sidecars reaches a client;
//   nothing comes through the peer listener without the right greeting; each answer there bears one
//     mark; and with "say" nothing is passed on before something follows the head;
//   what goes to the holder's gate is a client's, never another sidecar's; it bears our greeting
//   and
//     no Lease-* else; and before that gate has said its admission, nothing but a head goes, unless
//     the request is idempotent and has no body; whatever may have been executed there is not sent
//     again, to nobody.
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
