#include "lib/certificates.h"

#include <cstdlib>
#include <fstream>

namespace leasehold::testing {
namespace {

std::string NewKey(const std::string& name) {
  return "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " + name + ".key";
}

}  // namespace

const Certificates& Certificates::Get() {
  static const Certificates instance;
  return instance;
}

Certificates::Certificates() {
  Authority("ca", "Test Authority");
  Authority("other-ca", "Other Authority");
  Leaf("good", "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days 2");
  Leaf("elsewhere", "ca", "subjectAltName=DNS:elsewhere.example", "-days 2");
  // A negative span: ended a day before it was made.
  Leaf("expired", "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days -1");
  Leaf("client", "ca", "extendedKeyUsage=clientAuth", "-days 2");
}

void Certificates::Run(const std::string& command) {
  const std::string line = "cd '" + dir_.path() + "' && " + command + " >/dev/null 2>&1";
  ok_ = ok_ && std::system(line.c_str()) == 0;
}

void Certificates::Authority(const std::string& name, const std::string& subject) {
  Run("openssl req -x509 " + NewKey(name) + " -out " + name + ".pem -days 2 -subj '/CN=" + subject +
      "'");
}

void Certificates::Leaf(const std::string& name, const std::string& authority,
                        const std::string& extension, const std::string& span) {
  Run("openssl req -new " + NewKey(name) + " -out " + name + ".csr -subj '/CN=" + name + "'");
  std::ofstream(dir_.File(name + ".ext")) << extension << "\n";
  Run("openssl x509 -req -in " + name + ".csr -CA " + authority + ".pem -CAkey " + authority +
      ".key -CAcreateserial -out " + name + ".pem -extfile " + name + ".ext " + span);
}

}  // namespace leasehold::testing
