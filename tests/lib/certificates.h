// Certificates: for tests of TLS, made by the openssl command. One authority ("ca"), a good
// certificate for "localhost" and 127.0.0.1 ("good"), one for another name ("elsewhere"), an
// expired one ("expired"), another authority ("other-ca"), and a client certificate ("client").
// Made once in a process: keys take time. File("good.pem"), File("good.key").
#pragma once

#include <string>

#include "lib/socket_peer.h"

namespace leasehold::testing {

class Certificates {
 public:
  static const Certificates& Get();
  std::string File(const std::string& name) const { return dir_.File(name); }
  bool ok() const { return ok_; }

 private:
  Certificates();
  void Run(const std::string& command);
  void Authority(const std::string& name, const std::string& subject);
  void Leaf(const std::string& name, const std::string& authority, const std::string& extension,
            const std::string& span);

  TempDir dir_;
  bool ok_ = true;
};

}  // namespace leasehold::testing
