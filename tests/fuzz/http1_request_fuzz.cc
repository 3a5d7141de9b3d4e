// A client's bytes through the http gate's request parser and header rewriting. Asserted of any
// bytes: every fragmentation gives the same messages and the same verdict; what is accepted, a
// second, strict reader accepts too, with the same fields, body and borders (it refuses the whole
// table of vectors, so none of them is ever accepted); and what the gate would send on, to the
// application, or to the holder's gate and from there to the application, is again exactly these
// messages, one for one, with the same bodies: hop-by-hop fields gone, ours there once, none of the
// names that are ours let in from the client in any spelling, the rest passed on in order, the same
// over one sidecar as over two, and never over the second one's limits.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "fuzz/http1_trace.h"
#include "fuzz/http_forwarding.h"
#include "fuzz/http_reference.h"
#include "gate/http_headers.h"
#include "proto/http1.h"

namespace leasehold::fuzz {
namespace {

using proto::http1::RequestParser;

constexpr auto kIsRequest = [](size_t) { return RefKind::kRequest; };
constexpr auto kNothing = [](auto&&...) {};

void CheckSentOn(const RefMessage& from, const RefMessage& to, const Stamp& stamp) {
  CHECK(to.method == from.method, "the method is another");
  CHECK(to.minor == 1, "it is not sent on as HTTP/1.1");
  CHECK(SameTarget(from, to), "the target is another, or not in origin-form");
  CHECK(to.Count("host") == 1, "not exactly one Host is sent on");
  CHECK(to.body == from.body, "the body sent on is another");
  CheckPassedOn(from, to, stamp.via ? PassedOn::kToApplication : PassedOn::kToPeer);
  CheckStamp(to, stamp);
  CheckHopByHop(from, to);
  CheckForwardedFields(from, to);
}

// Reads back what was sent on: `froms` again, one for one, and nothing else.
void CheckStream(const std::vector<RefMessage>& froms, std::string_view bytes, const Stamp& stamp) {
  uint64_t sequence = 0;
  for (const RefMessage& from : froms) {
    RefMessage to;
    CHECK(ReadReference(bytes, RefKind::kRequest, true, &to) == RefRead::kMessage,
          "what is sent on is not a whole request");
    bytes.remove_prefix(to.size);
    Stamp mine = stamp;
    mine.sequence = ++sequence;
    CheckSentOn(from, to, mine);
  }
  CHECK(bytes.empty(), "more is sent on than came in");
}

// The second sidecar: what arrives from the first is parsed with a peer listener's limits.
void CheckSecondHop(const std::vector<RefMessage>& froms, std::string_view bytes) {
  const auto limits = gate::WithPeerRoom(SmallLimits());
  RequestParser parser(limits);
  Forwarder to_application(Hop::kFromPeer);
  const Trace trace = RunParser(
      parser, limits, bytes, 0, false,
      [](RequestParser& at_head) {
        CHECK(at_head.head().lease_peers == 1, "not one greeting for the holder's gate");
        CHECK(at_head.head().lease_peer.starts_with(kHello), "the greeting is another");
      },
      [&](RequestParser& p, TracedMessage& message) { to_application.Send(p, message); });
  CHECK(!trace.error, "the second sidecar refuses what the first took");
  CHECK(trace.messages.size() == froms.size(), "the second sidecar sees another number");
  Stamp stamp;
  stamp.two_hops = true;
  CheckStream(froms, to_application.bytes(), stamp);
}

void CheckForwarding(std::string_view input) {
  const auto limits = SmallLimits();
  RequestParser parser(limits);
  Forwarder to_application(Hop::kDirect);
  Forwarder to_peer(Hop::kToPeer);
  (void)RunParser(parser, limits, input, 0, false, kNothing,
                  [&](RequestParser& p, TracedMessage& message) {
                    to_application.Send(p, message);
                    to_peer.Send(p, message);
                  });
  std::vector<RefMessage> froms;
  while (froms.size() < to_application.count()) {
    froms.emplace_back();
    (void)ReadReference(input, RefKind::kRequest, true, &froms.back());
    input.remove_prefix(froms.back().size);
  }
  CheckStream(froms, to_application.bytes(), Stamp{});
  Stamp peer_stamp;
  peer_stamp.via = false;
  CheckStream(froms, to_peer.bytes(), peer_stamp);
  CheckSecondHop(froms, to_peer.bytes());
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  const auto limits = SmallLimits();
  std::optional<Trace> whole;
  for (int way = 0; way < Splitter::kWays; ++way) {
    RequestParser parser(limits);
    const Trace trace = RunParser(parser, limits, input, way, false, kNothing, kNothing);
    CHECK(!trace.error || (trace.status >= 400 && trace.status <= 505), "no status to answer");
    if (whole) {
      CheckSameTrace(*whole, trace);
    } else {
      whole = trace;
    }
  }
  CheckReference(*whole, input, false, kIsRequest);
  CheckForwarding(input);
  return 0;
}
