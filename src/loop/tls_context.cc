#include "loop/tls_context.h"

#include <dirent.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdlib>
#include <string_view>

#include "loop/socket_address.h"

namespace leasehold::loop {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using ContextPointer = std::unique_ptr<SSL_CTX, FreeContext>;

std::string LastReason() {
  const unsigned long code = ERR_peek_last_error();
  if (ERR_SYSTEM_ERROR(code))
    return ERR_reason_error_string(code) ? ERR_reason_error_string(code)
                                         : "the system gave no reason";
  const char* reason = ERR_reason_error_string(code);
  return reason == nullptr ? "OpenSSL gave no reason" : reason;
}

base::Error FileError(const std::string& target, std::string_view what, const std::string& file) {
  return {base::ErrorCode::kInvalid, "TLS with " + target + ": the " + std::string(what) + " \"" +
                                         file + "\" cannot be used: " + LastReason()};
}

// The certificate directory finds the one authority that is needed by its hash (c_rehash names);
// the bundle file would load every authority, 3 to 5 MiB of memory, for each connection.
bool DirectoryHasHashes(const char* path) {
  DIR* dir = opendir(path);
  if (dir == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(dir)) {
    if (std::string_view(entry->d_name).ends_with(".0")) {
      found = true;
      break;
    }
  }
  closedir(dir);
  return found;
}

void UseSystemAuthorities(SSL_CTX* context) {
  const char* dir = std::getenv(X509_get_default_cert_dir_env());
  const bool file_chosen = std::getenv(X509_get_default_cert_file_env()) != nullptr;
  SSL_CTX_set_default_verify_dir(context);
  if (file_chosen || !DirectoryHasHashes(dir != nullptr ? dir : X509_get_default_cert_dir())) {
    SSL_CTX_set_default_verify_file(context);
  }
}

base::Status LoadFiles(SSL_CTX* context, const TlsOptions& options, const std::string& target) {
  if (options.verify) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    if (options.ca_file.empty()) {
      UseSystemAuthorities(context);
    } else if (SSL_CTX_load_verify_file(context, options.ca_file.c_str()) != 1) {
      return FileError(target, "authority file", options.ca_file);
    }
  }
  if (options.cert_file.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, options.cert_file.c_str()) != 1) {
    return FileError(target, "client certificate", options.cert_file);
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return FileError(target, "private key", options.key_file);
  }
  return {};
}

// What the certificate must say, and what the server is told it is called (SNI; never an address,
// RFC 6066 section 3).
bool SetName(SSL* ssl, const TlsOptions& options) {
  const std::string& name = options.server_name;
  const bool is_address = FromLiteral(name, 0).has_value();
  if (!is_address && !name.empty() && SSL_set_tlsext_host_name(ssl, name.c_str()) != 1)
    return false;
  if (!options.verify) return true;
  if (is_address) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  }
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(ssl, name.c_str()) == 1;
}

std::string NotAfter(SSL* ssl) {
  const X509* certificate = SSL_get0_peer_certificate(ssl);
  BIO* text = certificate == nullptr ? nullptr : BIO_new(BIO_s_mem());
  if (text == nullptr) return "";
  char* bytes = nullptr;
  std::string date;
  if (ASN1_TIME_print(text, X509_get0_notAfter(certificate)) == 1) {
    const long size = BIO_get_mem_data(text, &bytes);
    date.assign(bytes, static_cast<size_t>(size));
  }
  BIO_free(text);
  return date;
}

std::string CertificateFault(SSL* ssl, long verdict) {
  switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH: {
      const char* name = X509_VERIFY_PARAM_get0_host(SSL_get0_param(ssl), 0);
      return "it is not for the name \"" + std::string(name == nullptr ? "" : name) +
             "\"; connect by a name it bears, or set the server name";
    }
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "it does not bear the address connected to; connect by a name it bears, or set the "
             "server name";
    case X509_V_ERR_CERT_HAS_EXPIRED: {
      const std::string date = NotAfter(ssl);
      return date.empty() ? "it has expired"
                          : "it (or its authority) has expired; its end: " + date;
    }
    case X509_V_ERR_CERT_NOT_YET_VALID: return "it is not valid yet; compare this machine's clock";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return std::string("it is not signed by a trusted authority (") +
             X509_verify_cert_error_string(verdict) + "); check the authority file";
    default: return X509_verify_cert_error_string(verdict);
  }
}

}  // namespace

base::Result<SslPointer> MakeClientSsl(const TlsOptions& options, const std::string& target) {
  ERR_clear_error();
  if (options.verify && options.server_name.empty()) {
    return base::Error{base::ErrorCode::kInvalid,
                       "TLS with " + target + ": no server name to check the certificate against"};
  }
  const ContextPointer context(SSL_CTX_new(TLS_client_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return base::Error{base::ErrorCode::kInternal, "TLS with " + target + ": " + LastReason()};
  }
  // Renegotiation would make a write wait for a read; nothing needs it.
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);  // idle connections stay small
  const base::Status files = LoadFiles(context.get(), options, target);
  if (!files) return files.error();
  SslPointer ssl(SSL_new(context.get()));  // keeps the context alive
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  if (!ssl || in == nullptr || out == nullptr || !SetName(ssl.get(), options)) {
    BIO_free(in);
    BIO_free(out);
    return base::Error{base::ErrorCode::kInvalid, "TLS with " + target + ": the server name \"" +
                                                      options.server_name + "\" cannot be used"};
  }
  SSL_set_bio(ssl.get(), in, out);
  SSL_set_connect_state(ssl.get());
  return ssl;
}

base::Error DescribeTlsError(SSL* ssl, const std::string& target) {
  const std::string start = "TLS with " + target + ": ";
  const long verdict = SSL_get_verify_result(ssl);
  if (verdict != X509_V_OK && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE) {
    return {base::ErrorCode::kRefused,
            start + "the server's certificate is refused: " + CertificateFault(ssl, verdict)};
  }
  const unsigned long code = ERR_peek_last_error();
  switch (ERR_GET_REASON(code)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_UNEXPECTED_MESSAGE:
      return {base::ErrorCode::kRefused,
              start + "the server does not speak TLS on this port (" + LastReason() + ")"};
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return {base::ErrorCode::kRefused, start + "the server has no TLS 1.2 or newer"};
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      return {base::ErrorCode::kRefused,
              start + "the server does not accept our client certificate (" + LastReason() + ")"};
    default: return {base::ErrorCode::kUnavailable, start + LastReason()};
  }
}

}  // namespace leasehold::loop
