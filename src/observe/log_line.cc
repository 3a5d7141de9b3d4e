#include "observe/log_line.h"

#include <cstdio>

#include "base/json_writer.h"

namespace leasehold::observe {
namespace {

// Kept free of every line for the note that something was cut.
constexpr size_t kCutNoteBytes = 16;
// The longest escape of one input byte is six bytes ("\u001b").
constexpr size_t kEscapedBytesMax = 6;

bool IsBare(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (c <= ' ' || c > '~' || c == '"' || c == '=' || c == '\\') return false;
  }
  return true;
}

// Keys and event names are ours, but a name out of configuration may end up in one.
std::string Word(std::string_view text) {
  std::string word(text.substr(0, 64));
  for (char& c : word) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
    if (!fine) c = '_';
  }
  return word.empty() ? "_" : word;
}

class Builder {
 public:
  explicit Builder(LogFormat format) : json_(format == LogFormat::kJson) {}

  void Add(std::string_view key, std::string_view value, bool quoted) {
    std::string pair = Pair(key, value, quoted);
    if (Fits(pair)) {
      out_ += pair;
      return;
    }
    cut_ = true;
    const size_t room = kLineBytesMax - kStampBytesMax - kCutNoteBytes - out_.size();
    const size_t overhead = key.size() + 8;  // separator, quotes, equals sign or colon
    if (!quoted || room <= overhead + kEscapedBytesMax) return;
    pair = Pair(key, value.substr(0, (room - overhead) / kEscapedBytesMax), true);
    if (Fits(pair)) out_ += pair;
  }

  std::string Finish() {
    if (cut_) out_ += json_ ? ",\"cut\":true" : " cut=true";
    return std::move(out_);
  }

 private:
  bool Fits(const std::string& pair) const {
    return out_.size() + pair.size() <= kLineBytesMax - kStampBytesMax - kCutNoteBytes;
  }
  std::string Pair(std::string_view key, std::string_view value, bool quoted) const {
    std::string pair;
    if (!out_.empty()) pair += json_ ? ',' : ' ';
    if (json_) {
      pair += '"' + std::string(key) + "\":";
      pair += quoted ? QuoteOneLine(value) : std::string(value);
    } else {
      pair += std::string(key) + '=';
      pair += IsBare(value) ? std::string(value) : QuoteOneLine(value);
    }
    return pair;
  }

  bool json_;
  bool cut_ = false;
  std::string out_;
};

}  // namespace

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarn: return "warn";
    case LogLevel::kError: return "error";
  }
  return "error";
}

std::string QuoteOneLine(std::string_view text) {
  const std::string quoted = base::JsonQuote(text);  // well-formed UTF-8 from here on
  std::string out;
  out.reserve(quoted.size());
  for (size_t i = 0; i < quoted.size(); ++i) {
    const auto at = [&](size_t k) {
      return i + k < quoted.size() ? static_cast<unsigned char>(quoted[i + k]) : 0U;
    };
    unsigned escape = 0;
    size_t extra = 0;
    if (at(0) == 0x7f) {
      escape = 0x7f;
    } else if (at(0) == 0xc2 && at(1) >= 0x80 && at(1) <= 0x9f) {
      escape = at(1);
      extra = 1;
    } else if (at(0) == 0xe2 && at(1) == 0x80 && (at(2) == 0xa8 || at(2) == 0xa9)) {
      escape = at(2) == 0xa8 ? 0x2028 : 0x2029;
      extra = 2;
    }
    if (escape == 0) {
      out += quoted[i];
      continue;
    }
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "\\u%04x", escape);
    out += buffer;
    i += extra;
  }
  return out;
}

std::string LineBody(LogFormat format, LogLevel level, std::string_view event,
                     std::string_view message, Fields fields) {
  Builder builder(format);
  builder.Add("level", LevelName(level), true);
  builder.Add("event", Word(event), true);
  builder.Add("msg", message, true);
  for (const Field& field : fields) {
    if (!field.text.empty())
      builder.Add(Word(field.key), field.text, field.quoted);  // empty says nothing
  }
  return builder.Finish();
}

}  // namespace leasehold::observe
