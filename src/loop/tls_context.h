// TLS set-up and sentences, for tls_stream.cc: an SSL object from TlsOptions, and what went wrong
// in words that name the check that failed. Files are read for every connection, so that renewed
// certificates take effect without a restart.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "loop/connect.h"

namespace leasehold::loop {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPointer = std::unique_ptr<SSL, FreeSsl>;

// A client SSL with two memory BIOs, verification as asked. Errors (kInvalid) name the file.
base::Result<SslPointer> MakeClientSsl(const TlsOptions& options, const std::string& target);

// Why the last operation on `ssl` failed: the certificate check if one failed, else OpenSSL's
// reason. kRefused where only somebody's change helps, kUnavailable otherwise.
base::Error DescribeTlsError(SSL* ssl, const std::string& target);

}  // namespace leasehold::loop
