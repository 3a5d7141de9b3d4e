#include "fuzz/http_reference.h"

#include <algorithm>

namespace leasehold::fuzz {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
// RFC 9110 5.6.2.
constexpr std::string_view kTokenChars =
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
// The table of vectors: digits beyond these, or extensions beyond that, are refused.
constexpr size_t kChunkDigits = 15;
constexpr size_t kExtensionBytes = 4096;
constexpr size_t kLengthDigits = 18;

bool AllOf(std::string_view text, std::string_view chars) {
  return !text.empty() && text.find_first_not_of(chars) == std::string_view::npos;
}

// RFC 9110 5.5: visible characters, blanks, and bytes above 127.
bool IsFieldText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// A cursor over the bytes that knows the difference between "not yet" and "wrong".
class Reader {
 public:
  Reader(std::string_view bytes, RefKind kind, bool ended, RefMessage* message)
      : bytes_(bytes), kind_(kind), ended_(ended), message_(*message) {}

  RefRead Read() {
    if (kind_ == RefKind::kRequest) {
      while (bytes_.substr(at_, 2) == "\r\n") at_ += 2;
    }
    const RefRead head = ReadHead();
    if (head != RefRead::kMessage) return head;
    message_.head_done = true;
    message_.head_size = at_;
    const RefRead body = ReadBody();
    message_.size = at_;
    return body;
  }

 private:
  // The line at the cursor without its CRLF.
  RefRead Line(std::string_view* line) {
    const size_t lf = bytes_.find('\n', at_);
    if (lf == std::string_view::npos) return RefRead::kMore;
    if (lf == at_ || bytes_[lf - 1] != '\r') return RefRead::kBad;
    *line = bytes_.substr(at_, lf - 1 - at_);
    at_ = lf + 1;
    return line->find('\r') == std::string_view::npos ? RefRead::kMessage : RefRead::kBad;
  }

  RefRead ReadHead() {
    std::string_view line;
    const RefRead first = Line(&line);
    if (first != RefRead::kMessage) return first;
    if (!(kind_ == RefKind::kRequest ? RequestLine(line) : StatusLine(line))) return RefRead::kBad;
    const RefRead fields = ReadFields(&message_.fields);
    if (fields != RefRead::kMessage) return fields;
    const size_t hosts = message_.Count("host");
    if (kind_ == RefKind::kRequest && (hosts > 1 || (hosts == 0 && message_.minor == 1))) {
      return RefRead::kBad;
    }
    return RefRead::kMessage;
  }

  bool RequestLine(std::string_view line) {
    const size_t one = line.find(' ');
    const size_t two = line.rfind(' ');
    if (one == std::string_view::npos || one == two) return false;
    message_.method = line.substr(0, one);
    message_.target = line.substr(one + 1, two - one - 1);
    const bool printable = std::all_of(message_.target.begin(), message_.target.end(), [](char c) {
      return static_cast<unsigned char>(c) > ' ' && c != '\x7f';
    });
    return AllOf(message_.method, kTokenChars) && !message_.target.empty() && printable &&
           Version(line.substr(two + 1));
  }

  bool StatusLine(std::string_view line) {
    if (line.size() < 12 || line[8] != ' ' || !Version(line.substr(0, 8))) return false;
    const std::string_view code = line.substr(9, 3);
    if (!AllOf(code, kDigits) || code[0] == '0') return false;
    message_.status = std::stoi(std::string(code));
    return line.size() == 12 || (line[12] == ' ' && IsFieldText(line.substr(13)));
  }

  bool Version(std::string_view text) {
    message_.minor = text == "HTTP/1.0" ? 0 : 1;
    return text == "HTTP/1.0" || text == "HTTP/1.1";
  }

  RefRead ReadFields(std::vector<RefField>* fields) {
    std::string_view line;
    for (;;) {
      const RefRead read = Line(&line);
      if (read != RefRead::kMessage) return read;
      if (line.empty()) return RefRead::kMessage;
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos) return RefRead::kBad;
      const std::string_view name = line.substr(0, colon);
      const std::string_view value = Trim(line.substr(colon + 1));
      if (!AllOf(name, kTokenChars) || !IsFieldText(value)) return RefRead::kBad;
      fields->push_back({std::string(name), std::string(value)});
    }
  }

  // RFC 9112 6.3, with everything ambiguous refused.
  RefRead ReadBody() {
    std::string length;
    std::string encoding;
    const size_t lengths = message_.Count("content-length", &length);
    const size_t encodings = message_.Count("transfer-encoding", &encoding);
    if (lengths + encodings > 1) return RefRead::kBad;
    if (encodings == 1 && (message_.minor == 0 || LowerCase(encoding) != "chunked")) {
      return RefRead::kBad;
    }
    if (lengths == 1 && (!AllOf(length, kDigits) || length.size() > kLengthDigits)) {
      return RefRead::kBad;
    }
    const bool bodiless = message_.status < 200 || message_.status == 204 || message_.status == 304;
    if (kind_ == RefKind::kAnswerToHead || (kind_ == RefKind::kAnswer && bodiless)) {
      return RefRead::kMessage;
    }
    message_.chunked = encodings == 1;
    if (message_.chunked) return ReadChunks();
    if (lengths == 1) return Take(std::stoull(length));
    if (kind_ == RefKind::kRequest) return RefRead::kMessage;
    message_.until_close = true;
    (void)Take(bytes_.size() - at_);
    return ended_ ? RefRead::kMessage : RefRead::kMore;
  }

  RefRead Take(size_t size) {
    const size_t taken = std::min(size, bytes_.size() - at_);
    message_.body += bytes_.substr(at_, taken);
    at_ += taken;
    return taken == size ? RefRead::kMessage : RefRead::kMore;
  }

  RefRead ReadChunks() {
    size_t extensions = 0;
    for (;;) {
      std::string_view line;
      const RefRead read = Line(&line);
      if (read != RefRead::kMessage) return read;
      const std::string_view digits = line.substr(0, line.find(';'));
      extensions += line.size() - digits.size() - (digits.size() < line.size() ? 1 : 0);
      if (!AllOf(digits, kHexDigits) || digits.size() > kChunkDigits || !IsFieldText(line) ||
          extensions > kExtensionBytes) {
        return RefRead::kBad;
      }
      const size_t size = std::stoull(std::string(digits), nullptr, 16);
      if (size == 0) return ReadFields(&message_.trailers);
      const RefRead data = Take(size);
      if (data != RefRead::kMessage) return data;
      if (bytes_.size() - at_ < 2) {
        return bytes_.substr(at_) == std::string_view("\r\n").substr(0, bytes_.size() - at_)
                   ? RefRead::kMore
                   : RefRead::kBad;
      }
      if (bytes_.substr(at_, 2) != "\r\n") return RefRead::kBad;
      at_ += 2;
    }
  }

  const std::string_view bytes_;
  const RefKind kind_;
  const bool ended_;
  RefMessage& message_;
  size_t at_ = 0;
};

}  // namespace

size_t RefMessage::Count(std::string_view name, std::string* value) const {
  size_t count = 0;
  for (const RefField& field : fields) {
    if (LowerCase(field.name) != name) continue;
    ++count;
    if (value != nullptr) *value = field.value;
  }
  return count;
}

RefRead ReadReference(std::string_view bytes, RefKind kind, bool ended, RefMessage* message) {
  *message = {};
  return Reader(bytes, kind, ended, message).Read();
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string FoldName(std::string_view name) {
  std::string folded = LowerCase(name);
  for (char& c : folded) {
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9')) c = '-';
  }
  return folded;
}

std::vector<std::string> ListTokens(std::string_view list) {
  std::vector<std::string> tokens;
  for (;;) {
    const size_t comma = list.find(',');
    const std::string_view token = Trim(list.substr(0, comma));
    if (!token.empty()) tokens.push_back(LowerCase(token));
    if (comma == std::string_view::npos) return tokens;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace leasehold::fuzz
