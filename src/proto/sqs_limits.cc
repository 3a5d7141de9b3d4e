#include "proto/sqs_limits.h"

#include <algorithm>

#include "base/utf8.h"

namespace leasehold::proto::sqs {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

}  // namespace

bool IsMessageText(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = base::Utf8Length(bytes, i);
    if (length == 0) return false;
    const char c = bytes[i];
    if (length == 1 && static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' &&
        c != '\r') {
      return false;
    }
    const std::string_view sequence = bytes.substr(i, length);
    if (sequence == "\xef\xbf\xbe" || sequence == "\xef\xbf\xbf") return false;  // U+FFFE, U+FFFF
    i += length;
  }
  return true;
}

bool IsEntryId(std::string_view id) {
  return !id.empty() && id.size() <= kEntryIdMax &&
         std::all_of(id.begin(), id.end(), IsNameCharacter);
}

bool IsQueueName(std::string_view name) {
  constexpr std::string_view kFifo = ".fifo";
  if (name.size() > kQueueNameMax) return false;
  if (name.ends_with(kFifo)) name.remove_suffix(kFifo.size());
  return !name.empty() && std::all_of(name.begin(), name.end(), IsNameCharacter);
}

}  // namespace leasehold::proto::sqs
