// Whether a request that arrived is signed as AWS wants it (Signature Version 4): recomputed from
// its own bytes with the one key that the bench's proxies are given. Not here: the age of a
// signature. Stateless; so that a figure is never that of a proxy which signed wrongly or not at
// all.
#pragma once

#include <string>
#include <string_view>

#include "proto/http1_message.h"

namespace leasehold::bench {

// Empty: right. Else what is wrong with it, as a sentence.
std::string WrongSignature(const proto::http1::RequestHead& head, std::string_view body,
                           std::string_view access_key_id, std::string_view secret);

}  // namespace leasehold::bench
