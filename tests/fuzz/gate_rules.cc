#include "fuzz/gate_rules.h"

#include <algorithm>

#include "base/check.h"
#include "fuzz/http_forwarding.h"
#include "gate/peer_hello.h"

namespace leasehold::fuzz {
namespace {

uint64_t NumberOf(const RefMessage& message, std::string_view name) {
  std::string value;
  CHECK(message.Count(LowerCase(name), &value) == 1, "a request without our stamp");
  return std::stoull(value);
}

bool IsProblem(const RefMessage& answer) {
  std::string type;
  return answer.Count("content-type", &type) == 1 && type == "application/problem+json";
}

// Does it bear one right greeting, in whatever spelling? *count: how many it bears.
bool Greets(const RefMessage& request, bool* say, size_t* count) {
  std::string greeting;
  for (const RefField& field : request.fields) {
    if (FoldName(field.name) != "lease-peer") continue;
    ++*count;
    greeting = field.value;
  }
  gate::PeerHello hello;
  const bool right = *count == 1 && gate::ParsePeerHello(greeting, &hello) && hello.gate == "web" &&
                     hello.to == GateScene::kProcess;
  *say = right && hello.say;
  return right;
}

// Has it said, of its last request, that it is admitted, or answered it?
bool SaidAdmitted(const SceneUpstream& holder, const std::vector<RefMessage>& requests) {
  std::string_view rest = holder.sent;
  for (size_t answered = 0; answered < requests.size();) {
    RefMessage answer;
    const bool to_head = requests[answered].method == "HEAD";
    const RefRead read =
        ReadReference(rest, to_head ? RefKind::kAnswerToHead : RefKind::kAnswer, false, &answer);
    std::string mark;
    (void)answer.Count("lease-peer", &mark);
    const bool says = mark == gate::kPeerAnswer || mark == gate::kPeerAdmitted;
    if (answer.head_done && says && answered + 1 == requests.size()) return true;
    if (read != RefRead::kMessage) return false;
    rest.remove_prefix(answer.size);
    if (answer.status >= 200) ++answered;
  }
  return false;
}

}  // namespace

void GateRules::AfterStep() {
  CollectArrived();
  std::vector<std::vector<Source>> sources;
  for (const SceneClient& client : scene_.clients()) sources.push_back(SourcesOf(client));
  CheckSources(sources);
  for (size_t i = 0; i < sources.size(); ++i) CheckClient(scene_.clients()[i], sources[i]);
  CHECK(scene_.state().acts() || scene_.finishes_on_loss() ||
            ApplicationBytes() == application_bytes_,
        "bytes went to the application while the gate may not act");
  CHECK(scene_.state().valve != lease::Valve::kClosed || scene_.finishes_on_loss() ||
            scene_.in_flight() == 0,
        "a closed gate has work in flight");
}

size_t GateRules::ApplicationBytes() const {
  size_t bytes = 0;
  for (const SceneUpstream& upstream : scene_.upstreams()) {
    if (!upstream.holder) bytes += upstream.socket->received().size();
  }
  return bytes;
}

// Whole requests, and a last one whose head is whole.
std::vector<GateRules::Source> GateRules::SourcesOf(const SceneClient& client) const {
  std::vector<Source> sources;
  std::string_view rest = client.sent;
  for (;;) {
    Source source;
    const RefRead read = ReadReference(rest, RefKind::kRequest, false, &source.message);
    if (!source.message.head_done) return sources;
    source.whole = read == RefRead::kMessage;
    source.peer = client.peer;
    source.more_than_head = rest.size() > source.message.head_size;
    rest.remove_prefix(source.whole ? source.message.size : rest.size());
    sources.push_back(std::move(source));
    if (!sources.back().whole) return sources;
  }
}

// ---- what the application saw ----

void GateRules::CollectArrived() {
  arrived_.clear();
  at_holder_.clear();
  for (SceneUpstream& upstream : scene_.upstreams()) {
    std::string_view rest = upstream.socket->received();
    std::vector<RefMessage> requests;
    while (!rest.empty()) {
      RefMessage message;
      const RefRead read = ReadReference(rest, RefKind::kRequest, false, &message);
      CHECK(read != RefRead::kBad, "what is sent on is not a request");
      if (!message.head_done) break;
      const bool whole = read == RefRead::kMessage;
      requests.push_back(message);
      if (upstream.holder) {
        CheckAtHolder(upstream, requests, whole);
      } else {
        CheckArrived(message, whole);
      }
      // It may have switched: what follows is a tunnel's.
      const bool tunnel = message.Count("upgrade") > 0 && upstream.by_hand;
      if (!whole || tunnel) break;
      rest.remove_prefix(message.size);
    }
    CheckUpstream(upstream, requests);
  }
}

// What it has said, as answers to what it was asked so far. Anything behind them spoils it for the
// next request.
void GateRules::CheckUpstream(SceneUpstream& upstream, const std::vector<RefMessage>& requests) {
  CHECK(!upstream.spoilt || requests.size() == upstream.requests,
        "a request was sent on a connection with an answer to nothing on it");
  upstream.requests = requests.size();
  std::string_view rest = upstream.sent;
  for (size_t answered = 0; answered < requests.size();) {
    RefMessage answer;
    const bool to_head = requests[answered].method == "HEAD";
    const RefKind kind = to_head ? RefKind::kAnswerToHead : RefKind::kAnswer;
    if (ReadReference(rest, kind, false, &answer) != RefRead::kMessage) return;
    rest.remove_prefix(answer.size);
    if (answer.status == 101) return;
    if (answer.status >= 200) ++answered;
  }
  upstream.spoilt = !rest.empty();
}

void GateRules::CheckArrived(const RefMessage& message, bool whole) {
  const SceneState& state = scene_.state();
  CheckNone(message, "lease-peer");
  CheckOnce(message, "Lease-Holder", "node-1/" + std::string(GateScene::kProcess));
  CheckOnce(message, "Lease-Name", "orders");
  const Number number{NumberOf(message, "Lease-Fencing-Token"),
                      NumberOf(message, "Lease-Sequence")};
  if (known_.emplace(number, true).second) {
    CHECK(state.admits(), "a request was admitted while the gate does not admit");
    CHECK(number.first == state.token, "a request bears the token of another term");
  }
  const auto [it, first] = arrived_.emplace(number, Arrived{message, whole, false, true});
  if (first) return;
  Arrived& before = it->second;
  CHECK(before.message.method == message.method && before.message.target == message.target,
        "two requests bear one number");
  CHECK(IsIdempotent(message.method), "a request that is not idempotent was sent twice");
  CHECK(before.message.body.empty() || message.body.empty(), "it was sent twice after its body");
  if (!message.body.empty() || whole) before = {message, whole, false, true};
}

void GateRules::CheckAtHolder(const SceneUpstream& upstream,
                              const std::vector<RefMessage>& requests, bool whole) {
  const RefMessage& message = requests.back();
  std::string greeting;
  CHECK(message.Count("lease-peer", &greeting) == 1, "no greeting, or two, for the holder's gate");
  gate::PeerHello hello;
  CHECK(gate::ParsePeerHello(greeting, &hello) && hello.gate == "web" &&
            hello.from == GateScene::kProcess && hello.to.starts_with("process-"),
        "the greeting is not ours");
  for (const char* name : {"lease-fencing-token", "lease-holder", "lease-name", "lease-sequence"}) {
    CheckNone(message, name);
  }
  const bool sized = message.Count("content-length") > 0 && !(whole && message.body.empty());
  const bool at_once = IsIdempotent(message.method) && !message.chunked && !sized;
  CHECK(at_once || SaidAdmitted(upstream, requests) || (!whole && message.body.empty()),
        "more than a head went to a holder that had not said its admission");
  const bool once = !message.body.empty() || (whole && !IsIdempotent(message.method));
  at_holder_.push_back({message, whole, true, once});
}

// ---- where it came from ----

bool GateRules::IsOf(const Arrived& arrived, const Source& source) {
  const RefMessage& from = source.message;
  const RefMessage& to = arrived.message;
  if (arrived.once && source.taken) return false;
  if (arrived.at_holder && source.peer) return false;
  if (from.method != to.method || !SameTarget(from, to)) return false;
  if (arrived.whole && (!source.whole || from.body != to.body)) return false;
  if (!from.body.starts_with(to.body)) return false;
  bool say = false;
  size_t greetings = 0;
  const bool greets = Greets(from, &say, &greetings);
  if (!source.peer) return greetings == 0;  // only a sidecar that went astray sends one here
  if (!greets) return false;
  const bool has_body = from.chunked || from.Count("content-length") > 0;
  return !say || !has_body || from.Count("expect") > 0 || source.more_than_head ||
         (from.body.empty() && !from.chunked);
}

// Those that arrived whole first: they fit less.
void GateRules::CheckSources(std::vector<std::vector<Source>>& sources) const {
  std::vector<Arrived> all = at_holder_;
  for (const auto& [number, arrived] : arrived_) all.push_back(arrived);
  for (const int fits : {3, 2, 1, 0}) {
    for (const Arrived& arrived : all) {
      if ((arrived.once ? 2 : 0) + (arrived.whole ? 1 : 0) != fits) continue;
      Source* found = nullptr;
      for (auto& of_client : sources) {
        for (Source& source : of_client) {
          if (found == nullptr && IsOf(arrived, source)) found = &source;
        }
      }
      CHECK(found != nullptr,
            "a request was sent on that nobody sent, or sent so, or a second time");
      found->taken |= arrived.once;
    }
  }
}

// ---- what clients saw ----

void GateRules::CheckClient(const SceneClient& client, const std::vector<Source>& sources) const {
  const std::string& received = client.socket->received();
  const bool ended = client.socket->ended();
  const bool may_not_act =
      !scene_.state().acts() && !scene_.finishes_on_loss() && !scene_.forwards();
  size_t at = 0;
  size_t finals = 0;
  while (at < received.size()) {
    const std::string_view rest = std::string_view(received).substr(at);
    const Source* source = finals < sources.size() ? &sources[finals] : nullptr;
    const bool to_head = source != nullptr && source->message.method == "HEAD";
    RefMessage answer;
    RefRead read =
        ReadReference(rest, to_head ? RefKind::kAnswerToHead : RefKind::kAnswer, ended, &answer);
    // A head that cannot be read is answered with a body, also if it began with HEAD.
    const bool unread = to_head && answer.status >= 400 && rest.size() > answer.size &&
                        !rest.substr(answer.size).starts_with("HTTP/");
    if (unread) read = ReadReference(rest, RefKind::kAnswer, ended, &answer);
    CHECK(read != RefRead::kBad, "a client gets what is not an answer");
    if (read == RefRead::kMore) {
      CHECK(!ended, "an answer that is not whole ended in order");
      CHECK(!may_not_act || received.size() == client.seen_before,
            "part of an answer went to a client while the gate may not act");
      return;
    }
    if (may_not_act && at + answer.size > client.seen_before) {
      CHECK(at >= client.seen_before && IsProblem(answer),
            "an answer of the application went to a client while the gate may not act");
    }
    CheckAnswer(client, answer, source);
    if (answer.status == 101) return;
    if (answer.status >= 200) ++finals;
    CHECK(finals <= sources.size() + 1, "a client gets more answers than it asked for");
    at += answer.size;
  }
}

void GateRules::CheckAnswer(const SceneClient& client, const RefMessage& answer,
                            const Source* source) const {
  std::string mark;
  const size_t marks = answer.Count("lease-peer", &mark);
  if (client.peer) {
    CHECK(marks == 1, "an answer of the peer listener does not bear one mark");
    CHECK(mark == gate::kPeerAdmitted || mark == gate::kPeerAnswer ||
              mark == gate::kPeerNotAdmitted || mark == gate::kPeerRefused,
          "an answer of the peer listener bears an unknown mark");
  } else if (answer.status != 508) {
    CheckNone(answer, "lease-peer");
  }
  if (answer.status == 101) {
    CHECK(source != nullptr && source->message.Count("upgrade") > 0, "it switched unasked");
  }
  CHECK(source == nullptr || source->message.minor == 1 || !answer.chunked,
        "an HTTP/1.0 client gets chunks");
  std::string name;
  if (answer.Count("x-answers", &name) == 0 || !NamesAreOurs()) return;
  CHECK(source != nullptr, "an answer to nothing");
  const size_t blank = name.find(' ');
  RefMessage to;
  to.method = name.substr(0, blank);
  to.target = name.substr(blank + 1);
  CHECK(source->message.method == to.method && SameTarget(source->message, to),
        "a client got the answer to another request");
  CHECK(answer.body == (to.method == "HEAD" ? "" : name), "the body of another answer");
}

// The application of the script has not forged the name of an answer.
bool GateRules::NamesAreOurs() const {
  return std::none_of(
      scene_.upstreams().begin(), scene_.upstreams().end(), [](const SceneUpstream& upstream) {
        return upstream.by_hand && LowerCase(upstream.sent).find("nswers") != std::string::npos;
      });
}

}  // namespace leasehold::fuzz
