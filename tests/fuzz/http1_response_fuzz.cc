// An application's (or the holder's gate's) bytes through the http gate's answer parser and header
// rewriting, as answers to GET, to HEAD, and to both in turn. Asserted of any bytes: every
// fragmentation gives the same answers and the same verdict; what is accepted, a second, strict
// reader accepts too, with the same fields, body and borders; and what the gate would send to the
// client is again exactly these answers, with the same bodies: the framing that the client sees is
// decidable without the application's word, fields of one hop are gone, Lease-Peer is never passed
// on, the rest goes on in order, and ends in order only where the answer was complete.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "fuzz/http1_trace.h"
#include "fuzz/http_forwarding.h"
#include "fuzz/http_reference.h"
#include "fuzz/string_stream.h"
#include "gate/http_headers.h"
#include "gate/http_outgoing.h"
#include "proto/http1.h"

namespace leasehold::fuzz {
namespace {

using proto::http1::Framing;
using proto::http1::ResponseParser;

// Which requests the answers belong to.
enum class Asked { kGet, kHead, kInTurn };

bool IsHead(Asked asked, size_t finals) {
  return asked == Asked::kHead || (asked == Asked::kInTurn && finals % 2 == 1);
}

// The kind of message `index`: an interim answer belongs to the request of the final one after it.
class Kinds {
 public:
  Kinds(Asked asked, const Trace& trace) {
    size_t finals = 0;
    for (const TracedMessage& message : trace.messages) {
      kinds_.push_back(KindAt(asked, finals));
      if (message.first[0] != '1') ++finals;
    }
    kinds_.push_back(KindAt(asked, finals));
  }
  RefKind operator()(size_t index) const { return kinds_[index]; }

 private:
  static RefKind KindAt(Asked asked, size_t finals) {
    return IsHead(asked, finals) ? RefKind::kAnswerToHead : RefKind::kAnswer;
  }
  std::vector<RefKind> kinds_;
};

template <typename OnComplete>
Trace Run(std::string_view input, Asked asked, int way, OnComplete on_complete) {
  const auto limits = SmallLimits();
  ResponseParser parser(limits);
  size_t finals = 0;
  parser.ExpectAnswerToHead(IsHead(asked, 0));
  return RunParser(
      parser, limits, input, way, true, [](ResponseParser&) {},
      [&](ResponseParser& p, const TracedMessage& message) {
        on_complete(p, message);
        if (p.head().status >= 200) ++finals;
        p.ExpectAnswerToHead(IsHead(asked, finals));
      });
}

// One answer as the gate sends it to a client that speaks HTTP/1.`minor` (Downstream::RelayFinal).
std::string ToClient(const ResponseParser& parser, const TracedMessage& message, int minor,
                     gate::AnswerContext* context) {
  const auto& head = parser.head();
  const bool unsized = head.framing == Framing::kChunked || head.framing == Framing::kUntilClose;
  context->chunked = unsized && minor == 1;
  context->close = unsized && minor == 0;
  context->keep_alive_10 = minor == 0 && !context->close;
  context->upgrade = head.status == 101;
  std::string bytes;
  std::string text;
  gate::AppendResponseHead(text, head, *context);
  StringStream stream(bytes);
  uint64_t counter = 0;
  gate::Outgoing out(stream, counter);
  out.AddHead(text);
  const std::string_view body = message.body;
  for (Splitter pieces(body, 2); !pieces.done();) out.AddBody(pieces.Next(), context->chunked);
  std::string end;
  if (context->chunked) {
    gate::AppendChunkedEnd(end, parser.trailers(), false);
    out.AddChunkedEnd(end);
  }
  out.Flush();
  return bytes;
}

void CheckHopOfAnswer(const RefMessage& from, const RefMessage& to,
                      const gate::AnswerContext& context) {
  for (const char* name : {"keep-alive", "proxy-connection", "te"}) {
    CHECK(to.Count(name) == 0, "a field of one hop passed");
  }
  CHECK((to.Count("upgrade") > 0) == (context.upgrade && from.Count("upgrade") > 0),
        "Upgrade passed where nothing is upgraded, or not where it is");
  std::string connection;
  const size_t connections = to.Count("connection", &connection);
  const std::string expected = context.upgrade         ? "Upgrade"
                               : context.close         ? "close"
                               : context.keep_alive_10 ? "keep-alive"
                                                       : "";
  CHECK(connections == (expected.empty() ? 0U : 1U) && connection == expected,
        "Connection says something else than the gate does");
  const bool lengthless = from.status < 200 || from.status == 204;
  CHECK(!lengthless || to.Count("content-length") == 0, "a length where none may be");
}

void CheckOneAnswer(const ResponseParser& parser, const TracedMessage& message,
                    const RefMessage& from, RefKind kind) {
  for (const int minor : {1, 0}) {
    for (const std::string_view mark : {"", "answer"}) {
      gate::AnswerContext context;
      context.peer_mark = mark;
      const std::string bytes = ToClient(parser, message, minor, &context);
      RefMessage to;
      CHECK(ReadReference(bytes, kind, true, &to) == RefRead::kMessage && to.size == bytes.size(),
            "what goes to the client is not one whole answer");
      CHECK(!to.until_close || context.close, "only the connection's end would end this answer");
      CHECK(to.status == from.status, "the status is another");
      CHECK(to.body == from.body, "the body is another");
      CheckPassedOn(from, to, mark.empty() ? PassedOn::kToClient : PassedOn::kToPeerBack,
                    context.chunked);
      CheckHopOfAnswer(from, to, context);
      if (mark.empty()) {
        CheckNone(to, "lease-peer");
      } else {
        CheckOnce(to, "Lease-Peer", mark);
      }
    }
  }
}

void CheckAnswers(std::string_view input, Asked asked, const Kinds& kind_of) {
  std::string_view rest = input;
  size_t index = 0;
  (void)Run(input, asked, 0, [&](ResponseParser& parser, const TracedMessage& message) {
    RefMessage from;
    (void)ReadReference(rest, kind_of(index), true, &from);  // compared with ours before
    rest.remove_prefix(from.size);
    CheckOneAnswer(parser, message, from, kind_of(index));
    ++index;
  });
}

void CheckAll(std::string_view input, Asked asked) {
  std::optional<Trace> whole;
  for (int way = 0; way < Splitter::kWays; ++way) {
    const Trace trace = Run(input, asked, way, [](auto&&...) {});
    CHECK(!trace.error || trace.status == 502 || trace.status == 400, "no status to answer");
    if (whole) {
      CheckSameTrace(*whole, trace);
    } else {
      whole = trace;
    }
  }
  const Kinds kind_of(asked, *whole);
  CheckReference(*whole, input, true, kind_of);
  CheckAnswers(input, asked, kind_of);
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  for (const Asked asked : {Asked::kGet, Asked::kHead, Asked::kInTurn}) {
    CheckAll(View(data, size), asked);
  }
  return 0;
}
