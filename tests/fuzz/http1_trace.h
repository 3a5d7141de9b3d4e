// What proto/http1.h says of a stream, put together again as messages, for the targets of its two
// parsers: run in every fragmentation, and compared with the reference reader. Checks on the way
// what holds for any input: a step consumes no more than there is, a piece of a body lies in the
// input, after an error there are only errors, and the parser's memory stays within its limits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "fuzz/http_reference.h"
#include "proto/http1.h"

namespace leasehold::fuzz {

// The gate's limits are larger; these are reached by inputs of a size that is quick to try.
inline proto::http1::Limits SmallLimits() {
  proto::http1::Limits limits;
  limits.head_bytes_max = 768;
  limits.target_bytes_max = 256;
  limits.headers_max = 24;
  return limits;
}

struct TracedMessage {
  std::string first;  // method and target, or status and reason; then what was understood
  std::vector<RefField> fields;
  std::string body;
  std::vector<RefField> trailers;
  bool complete = false;
  size_t end = 0;  // where in the stream it was complete
  bool operator==(const TracedMessage&) const = default;
};

struct Trace {
  std::vector<TracedMessage> messages;
  bool error = false;
  int status = 0;
};

inline std::vector<RefField> Fields(const std::vector<proto::http1::Header>& headers) {
  std::vector<RefField> fields;
  for (const auto& header : headers) {
    fields.push_back({std::string(header.name), std::string(header.value)});
  }
  return fields;
}

inline std::string Understood(const proto::http1::HeadCommon& head) {
  return " HTTP/1." + std::to_string(head.version_minor) + " framing " +
         std::to_string(static_cast<int>(head.framing)) + " length " +
         std::to_string(head.content_length) + (head.keep_alive ? " keep" : "") +
         (head.upgrade ? " upgrade" : "") + (head.connection_names ? " names" : "");
}

inline std::string Summary(const proto::http1::RequestHead& head) {
  return std::string(head.method) + " " + std::string(head.target) + " of " +
         std::string(head.host) + Understood(head) + (head.expect_continue ? " expects" : "");
}

inline std::string Summary(const proto::http1::ResponseHead& head) {
  return std::to_string(head.status) + " " + std::string(head.reason) + Understood(head);
}

// `on_head` and `on_complete` see the parser at those events. `limits`: as the parser has them.
template <typename Parser, typename OnHead, typename OnComplete>
Trace RunParser(Parser& parser, const proto::http1::Limits& limits, std::string_view input, int way,
                bool ended, OnHead on_head, OnComplete on_complete) {
  using proto::http1::Event;
  Trace trace;
  size_t offset = 0;
  const auto handle = [&](const proto::http1::Step& step) {
    switch (step.event) {
      case Event::kNeedMore: return false;
      case Event::kHead:
        trace.messages.push_back({Summary(parser.head()), Fields(parser.head().headers), {}, {}});
        on_head(parser);
        return true;
      case Event::kBody: trace.messages.back().body += step.body; return true;
      case Event::kComplete:
        trace.messages.back().trailers = Fields(parser.trailers());
        trace.messages.back().complete = true;
        trace.messages.back().end = offset;
        on_complete(parser, trace.messages.back());
        return true;
      case Event::kError:
        trace.error = true;
        trace.status = parser.error().status;
        CHECK(parser.error().message[0] != '\0', "refused without a sentence");
        return false;
    }
    return false;
  };
  // Heads and trailers at most twice what they may have (a string's growth), fields likewise.
  const size_t memory_max = 4096 + 4 * (limits.head_bytes_max + 1) +
                            2 * limits.headers_max * sizeof(proto::http1::Header);
  for (Splitter pieces(input, way); !pieces.done() && !trace.error;) {
    const std::string_view piece = pieces.Next();
    const std::vector<char> copy(piece.begin(), piece.end());  // what is read past it is noticed
    std::string_view rest(copy.data(), copy.size());
    bool more = true;
    while (more) {
      const proto::http1::Step step = parser.Next(rest);
      CHECK(step.consumed <= rest.size(), "more was consumed than there is");
      CHECK(step.event != Event::kBody ||
                (step.body.data() >= rest.data() &&
                 step.body.data() + step.body.size() <= rest.data() + rest.size()),
            "a piece of a body lies outside of the input");
      rest.remove_prefix(step.consumed);
      offset += step.consumed;
      more = handle(step);
    }
    CHECK(trace.error || rest.empty(), "the parser asks for more and leaves some");
    CHECK(parser.memory() <= memory_max, "the parser holds more memory than its limits say");
  }
  if (ended && !trace.error) (void)handle(parser.Finish());
  if (trace.error) {
    CHECK(parser.Next("GET / HTTP/1.1\r\nHost: a\r\n\r\n").event == Event::kError, "it forgave");
    CHECK(parser.Finish().event == Event::kError, "it forgave at the end");
  }
  return trace;
}

inline void CheckSameTrace(const Trace& a, const Trace& b) {
  CHECK(a.error == b.error, "the verdict depends on the fragmentation");
  CHECK(a.messages == b.messages, "the messages depend on the fragmentation");
}

// What is complete, the reference reader must find too, ending where it ended; and what it finds
// more must have been refused.
template <typename KindOf>
void CheckReference(const Trace& trace, std::string_view input, bool ended, KindOf kind_of) {
  size_t at = 0;
  RefMessage message;
  size_t index = 0;
  for (const TracedMessage& ours : trace.messages) {
    const RefRead read = ReadReference(input.substr(at), kind_of(index), ended, &message);
    if (!ours.complete) {
      CHECK(read != RefRead::kMessage || trace.error, "a whole message is not seen as complete");
      return;
    }
    CHECK(read == RefRead::kMessage, "accepted what the reference reader refuses");
    at += message.size;
    CHECK(ours.end == at, "the border between messages is elsewhere");
    CHECK(ours.fields == message.fields, "the fields are others");
    CHECK(ours.body == message.body, "the body is another");
    CHECK(ours.trailers == message.trailers, "the trailers are others");
    ++index;
  }
  if (trace.error) return;
  const RefRead read = ReadReference(input.substr(at), kind_of(index), ended, &message);
  CHECK(at == input.size() || read != RefRead::kMessage, "a whole message is not seen");
}

}  // namespace leasehold::fuzz
