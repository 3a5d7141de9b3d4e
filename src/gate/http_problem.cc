#include "gate/http_problem.h"

#include "base/json_writer.h"
#include "gate/peer_hello.h"
#include "proto/http1_write.h"

namespace leasehold::gate {
namespace {

// Seconds. A planned move takes milliseconds, a crash about one TTL: asking again each second finds
// the new holder soon without a storm.
constexpr uint64_t kRetryAfter = 1;

}  // namespace

void AppendProblem(std::string& out, std::string& body, const Problem& problem) {
  const std::string_view title = proto::http1::ReasonPhrase(problem.status);
  body.clear();
  base::JsonWriter json(body);
  json.BeginObject();
  json.Member("type", "urn:leasehold:problem:" + std::string(problem.type));
  json.Member("title", title);
  json.Key("status").Int(problem.status);
  json.Member("detail", problem.detail);
  json.Member("lease", problem.lease);
  json.Member("state", problem.state);
  json.EndObject();
  body += '\n';
  proto::http1::AppendStatusLine(out, problem.status, title);
  proto::http1::AppendHeader(out, "Content-Type", "application/problem+json");
  proto::http1::AppendHeader(out, "Cache-Control", "no-store");
  proto::http1::AppendHeader(out, "Content-Length", uint64_t{body.size()});
  if (problem.status == 503) proto::http1::AppendHeader(out, "Retry-After", kRetryAfter);
  if (!problem.peer_mark.empty()) {
    proto::http1::AppendHeader(out, kPeerHeader, problem.peer_mark);
  }
  if (problem.close) {
    proto::http1::AppendHeader(out, "Connection", "close");
  } else if (problem.keep_alive_10) {
    proto::http1::AppendHeader(out, "Connection", "keep-alive");
  }
  out += proto::http1::kCrlf;
  if (!problem.head_only) out += body;
}

}  // namespace leasehold::gate
