// Credentials as JSON, in the forms of the container endpoint, of instance metadata and of a
// credential_process. Pure. Invariant: no part of the text is repeated in an error but a word that
// names an error ("AccessDenied").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "aws/credentials.h"
#include "base/result.h"

namespace leasehold::aws {

struct JsonForm {
  std::string_view token_name = "Token";  // "SessionToken" of a credential_process
  bool token_needed = true;
  bool expiry_needed = true;
};

// AccessKeyId, SecretAccessKey, token, Expiration; `who` begins every error's sentence ("EC2
// instance metadata"). kInvalid: no JSON, something missing, a byte that no key has. kRefused: it
// says that there are none ("Code" other than "Success").
base::Result<Credentials> ParseCredentialsJson(std::string_view text, const JsonForm& form,
                                               const std::string& who);

// Bytes that no access key, secret or token has: blanks, controls, what is beyond ASCII.
base::Status CheckKey(const proto::sigv4::Key& key, const std::string& who);

// "2026-11-30T14:41:55Z", also with a fraction and with "+01:00": RFC 3339.
std::optional<int64_t> ParseInstantMs(std::string_view text);

// `text` if it is a word of letters and digits as the names of AWS's errors are, with a blank
// before it and in brackets; else "".
std::string ErrorWord(std::string_view text);

}  // namespace leasehold::aws
