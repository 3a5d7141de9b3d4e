// Queue URLs: "https://sqs.eu-central-1.amazonaws.com/123456789012/orders", those of older hosts
// ("https://queue.amazonaws.com/...", "https://eu-west-1.queue.amazonaws.com/..."), and of
// emulators with ports, paths before the account, or names instead of one. A queue is known by the
// path of its URL: what stands before it is where one asks, and is what a sidecar changes. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leasehold::proto::sqs {

struct QueueUrl {
  std::string origin;   // "https://sqs.eu-central-1.amazonaws.com", "" of a path alone
  std::string prefix;   // before the account: "", or "/queue/eu-central-1" (some emulators)
  std::string account;  // "123456789012"
  std::string name;     // "orders.fifo"
  std::string path() const { return prefix + "/" + account + "/" + name; }
  std::string ToString() const { return origin + path(); }
};

inline constexpr size_t kQueueUrlMax = 1024;  // a host of 253, an account of 12, a name of 80

// An http or https URL, or the path of one; nullopt for everything else (a bare name is no URL),
// also with a query, a fragment, user information, or anything but printable ASCII. `base_path`: of
// the endpoint that the URL belongs to: taken off, if it is there.
std::optional<QueueUrl> ParseQueueUrl(std::string_view text, std::string_view base_path = "");

// The same queue, asked for at another origin ("http://127.0.0.1:9324", with a base path behind it
// if there is one).
std::string QueueUrlAt(std::string_view origin, const QueueUrl& queue);

// Where a client believes us to be: "http://" and its own Host header, if that is a host name or
// address with or without a port; else `fallback` (the listener's address, "127.0.0.1:9324").
std::string OriginForClient(std::string_view host_header, std::string_view fallback);

}  // namespace leasehold::proto::sqs
