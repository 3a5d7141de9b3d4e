// The canonical form: one spelling for all requests that mean the same, so that both sides hash the
// same bytes.
#include "proto/sigv4_canonical.h"

#include <algorithm>

#include "base/text.h"
#include "proto/percent.h"
#include "proto/sigv4.h"

namespace leasehold::proto::sigv4 {
namespace {

// What may stand between a value's words; line ends for values that were folded over lines.
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Without the blanks at its ends; each run of blanks inside is one.
std::string CanonicalValue(std::string_view value) {
  std::string canonical;
  canonical.reserve(value.size());
  bool gap = false;
  for (const char c : value) {
    if (IsBlank(c)) {
      gap = !canonical.empty();
      continue;
    }
    if (gap) canonical += ' ';
    gap = false;
    canonical += c;
  }
  return canonical;
}

// The byte at text[i], or for a triple %XX the byte it stands for; `i` is moved behind it. A '%'
// without two digits is itself.
char NextByte(std::string_view text, size_t& i, bool& was_encoded) {
  const char c = text[i++];
  was_encoded = false;
  if (c != '%' || text.size() - i < 2) return c;
  const int high = HexDigitValue(text[i]);
  const int low = HexDigitValue(text[i + 1]);
  if (high < 0 || low < 0) return c;
  i += 2;
  was_encoded = true;
  return static_cast<char>(high * 16 + low);
}

// One spelling of a part of a query: decoded, and encoded again as a signature wants it. '+' is a
// blank there, as every service that reads forms takes it.
std::string CanonicalQueryPart(std::string_view part) {
  std::string canonical;
  canonical.reserve(part.size());
  for (size_t i = 0; i < part.size();) {
    bool was_encoded = false;
    const char byte = NextByte(part, i, was_encoded);
    if (IsUnreserved(byte)) {
      canonical += byte;
    } else {
      AppendEncoded(canonical, byte == '+' && !was_encoded ? ' ' : byte);
    }
  }
  return canonical;
}

// S3: each name is encoded once. What is encoded stays so (an encoded '/' is not a separator), in
// the one spelling.
std::string CanonicalS3Path(std::string_view path) {
  std::string canonical;
  canonical.reserve(path.size());
  for (size_t i = 0; i < path.size();) {
    bool was_encoded = false;
    const char byte = NextByte(path, i, was_encoded);
    if (IsUnreserved(byte) || (byte == '/' && !was_encoded)) {
      canonical += byte;
    } else {
      AppendEncoded(canonical, byte);
    }
  }
  return canonical;
}

}  // namespace

std::string NormalizePath(std::string_view path) {
  std::vector<std::string_view> segments;
  for (const std::string_view segment : base::Split(path, '/')) {
    if (segment.empty() || segment == ".") continue;
    if (segment != "..") {
      segments.push_back(segment);
    } else if (!segments.empty()) {
      segments.pop_back();
    }
  }
  std::string normal;
  normal.reserve(path.size() + 1);
  for (const std::string_view segment : segments) normal.append("/").append(segment);
  if (segments.empty() || path.ends_with('/')) normal += '/';
  return normal;
}

std::string CanonicalPath(std::string_view path, PathForm form) {
  if (path.empty()) return "/";
  if (form == PathForm::kS3) return CanonicalS3Path(path);
  return PercentEncode(NormalizePath(path), "/");
}

std::string CanonicalQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  for (const std::string_view parameter : base::Split(query, '&')) {
    if (parameter.empty()) continue;
    const size_t equals = parameter.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : parameter.substr(equals + 1);
    parameters.emplace_back(CanonicalQueryPart(parameter.substr(0, equals)),
                            CanonicalQueryPart(value));
  }
  std::sort(parameters.begin(), parameters.end());
  std::string canonical;
  for (const auto& [name, value] : parameters) {
    if (!canonical.empty()) canonical += '&';
    canonical.append(name).append("=").append(value);
  }
  return canonical;
}

std::vector<Header> CanonicalHeaders(std::span<const Header> headers) {
  std::vector<Header> sorted;
  sorted.reserve(headers.size());
  for (const auto& [name, value] : headers) {
    sorted.emplace_back(base::ToLower(name), CanonicalValue(value));
  }
  // Stable: doubled headers keep their order.
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Header& a, const Header& b) { return a.first < b.first; });
  std::vector<Header> canonical;
  canonical.reserve(sorted.size());
  for (Header& header : sorted) {
    if (!canonical.empty() && canonical.back().first == header.first) {
      canonical.back().second.append(",").append(header.second);
    } else {
      canonical.push_back(std::move(header));
    }
  }
  return canonical;
}

std::string SignedHeaders(std::span<const Header> canonical_headers) {
  std::string names;
  for (const auto& [name, value] : canonical_headers) {
    if (!names.empty()) names += ';';
    names += name;
  }
  return names;
}

std::string CanonicalRequest(const Request& request, std::span<const Header> canonical_headers) {
  std::string canonical;
  canonical.reserve(512 + request.path.size() + request.query.size());
  canonical.append(request.method).append("\n");
  canonical.append(CanonicalPath(request.path, request.path_form)).append("\n");
  canonical.append(CanonicalQuery(request.query)).append("\n");
  for (const auto& [name, value] : canonical_headers) {
    canonical.append(name).append(":").append(value).append("\n");
  }
  canonical.append("\n").append(SignedHeaders(canonical_headers)).append("\n");
  return canonical.append(request.payload_sha256_hex);
}

std::string CanonicalRequest(const Request& request) {
  return CanonicalRequest(request, CanonicalHeaders(request.headers));
}

}  // namespace leasehold::proto::sigv4
