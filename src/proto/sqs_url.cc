#include "proto/sqs_url.h"

#include <algorithm>

#include "base/address.h"
#include "base/text.h"

namespace leasehold::proto::sqs {
namespace {

// What may stand in host and path without any encoding; also keeps out what ends a path ('?', '#'),
// what hides a host ('@', '\'), and dots that a server resolves.
bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~:/[]").find(c) != std::string_view::npos;
}

bool IsHostAndPort(std::string_view text) {
  if (text.empty()) return false;
  const auto in_host = [](char c) { return IsPlain(c) && c != '/' && c != '~'; };
  if (!std::all_of(text.begin(), text.end(), in_host)) return false;
  const bool bracketed = text.front() == '[';
  const size_t name_end = bracketed ? text.find(']') : text.find(':');
  if (bracketed && name_end == std::string_view::npos) return false;
  const std::string_view name = text.substr(0, name_end);
  if (name.empty() || (bracketed && name.size() < 3)) return false;
  if (!bracketed && name.find_first_of("[]") != std::string_view::npos) return false;
  std::string_view rest = name_end == std::string_view::npos ? "" : text.substr(name_end);
  if (bracketed) rest.remove_prefix(1);
  if (rest.empty()) return true;
  const base::Result<uint64_t> port = base::ParseUint64(rest.substr(1));
  return rest.front() == ':' && port.ok() && *port > 0 && *port <= 65535;
}

// Length of "scheme://host:port"; 0 of a path alone; npos of what is neither.
size_t OriginLength(std::string_view text) {
  if (text.starts_with('/')) return 0;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!base::EqualsIgnoreCase(text.substr(0, scheme.size()), scheme)) continue;
    const size_t end = std::min(text.find('/', scheme.size()), text.size());
    if (!IsHostAndPort(text.substr(scheme.size(), end - scheme.size()))) break;
    return end;
  }
  return std::string_view::npos;
}

bool IsSegment(std::string_view segment) {
  return !segment.empty() && segment != "." && segment != ".." &&
         segment.find_first_of(":[]") == std::string_view::npos;
}

}  // namespace

std::optional<QueueUrl> ParseQueueUrl(std::string_view text, std::string_view base_path) {
  if (text.size() > kQueueUrlMax || !std::all_of(text.begin(), text.end(), IsPlain)) {
    return std::nullopt;
  }
  const size_t origin = OriginLength(text);
  if (origin == std::string_view::npos) return std::nullopt;
  std::string_view path = text.substr(origin);
  if (path.starts_with(base_path) && path.substr(base_path.size()).starts_with('/')) {
    path.remove_prefix(base_path.size());
  }
  if (path.ends_with('/')) path.remove_suffix(1);
  if (path.empty()) return std::nullopt;
  const std::vector<std::string_view> segments = base::Split(path.substr(1), '/');
  if (segments.size() < 2 || !std::all_of(segments.begin(), segments.end(), IsSegment)) {
    return std::nullopt;
  }
  QueueUrl queue;
  queue.origin = text.substr(0, origin);
  queue.account = segments[segments.size() - 2];
  queue.name = segments.back();
  queue.prefix = path.substr(0, path.size() - queue.account.size() - queue.name.size() - 2);
  return queue;
}

std::string QueueUrlAt(std::string_view origin, const QueueUrl& queue) {
  return std::string(origin) + queue.path();
}

std::string OriginForClient(std::string_view host_header, std::string_view fallback) {
  const std::string_view host = base::Trim(host_header);
  constexpr size_t kHostMax = 260;  // a name of 253 and a port
  const bool usable = host.size() <= kHostMax && IsHostAndPort(host);
  return "http://" + std::string(usable ? host : fallback);
}

}  // namespace leasehold::proto::sqs
