// AccessRules: who may ask the localhost API what. Not the routes, not TLS (there is none: an
// address that other machines reach belongs behind a network policy as well). The rules:
//  - An address that is not loopback demands a token; without one, making the rules fails.
//  - `Host` must be ours: the listen address with our port or none; on loopback localhost,
//  127.0.0.1
//    or [::1] with any port (a forwarded one is another); or a name of allowed_hosts; else 421.
//    This is what stops DNS rebinding: a page whose name was pointed at us still sends its own
//    name. Where we listen beyond loopback any IP literal with our port is ours too, because probes
//    and scrapers address pods so and no rebinding does. Only probes may do without a Host
//    (HTTP/1.0 health checks).
//  - A call that changes something and bears an `Origin` must come from ourselves; else 403.
//  - With a token: calls that change something need it. Where we listen beyond loopback, reads need
//    it too, /metrics included; probes never do, because kubelets and balancers cannot give it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/http_message.h"
#include "admin/options.h"
#include "base/address.h"
#include "base/result.h"

namespace leasehold::admin {

enum class Access {
  kProbe,   // /livez and its like
  kRead,    // shows something
  kChange,  // changes something
};

class AccessRules {
 public:
  // `listen` as configured. The error names the option, its value and the remedy.
  static base::Result<AccessRules> Make(const AdminOptions& options, const base::Address& listen,
                                        std::string_view token);
  // Where we really listen (port 0 resolved); before the first Refuse().
  void SetBound(const base::Address& bound) { bound_ = bound; }

  // nullopt: go on. Otherwise the answer to give.
  std::optional<HttpAnswer> Refuse(const HttpRequest& request, Access access) const;

 private:
  AccessRules() = default;
  bool HostIsOurs(std::string_view host) const;
  bool OriginIsOurs(std::string_view origin) const;
  bool Allowed(std::string_view name, std::string_view port) const;  // by allowed_hosts
  bool TokenFits(const std::optional<std::string>& authorization) const;

  base::Address listen_;
  base::Address bound_;
  std::string token_;                       // empty: none
  std::vector<std::string> allowed_hosts_;  // lower case
};

// Takes the same time for every wrong text of one length.
bool EqualInConstantTime(std::string_view given, std::string_view expected);

}  // namespace leasehold::admin
