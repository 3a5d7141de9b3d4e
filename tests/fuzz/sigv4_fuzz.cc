// What is signed of a request, and the dates and encodings in it. The input is a request as text:
// "METHOD target", lines of headers, an empty line, the body. Asserted: the canonical request has
// exactly its lines and says what a second, plain reading of the request says; each part of it is
// in its one spelling, so that the form of the form is itself; what must not matter (a header's
// case, headers of hops, what a client signed with) does not; a date that was read is written the
// same.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "crypto/digest.h"
#include "fuzz/fuzz_target.h"
#include "proto/percent.h"
#include "proto/sigv4.h"
#include "proto/sigv4_canonical.h"

namespace leasehold::fuzz {
namespace {

namespace sigv4 = proto::sigv4;
using sigv4::Header;

struct Told {
  std::string method;
  std::string path;
  std::string query;
  std::vector<Header> headers;
  std::string body;
};

Told Read(std::string_view input) {
  Told told;
  const size_t end = input.find("\n\n");
  if (end != std::string_view::npos) told.body = std::string(input.substr(end + 2));
  const std::vector<std::string_view> lines = base::Split(input.substr(0, end), '\n');
  const size_t blank = lines[0].find(' ');
  told.method = std::string(lines[0].substr(0, blank));
  if (blank != std::string_view::npos) {
    const std::string_view target = lines[0].substr(blank + 1);
    const size_t mark = target.find('?');
    told.path = std::string(target.substr(0, mark));
    if (mark != std::string_view::npos) told.query = std::string(target.substr(mark + 1));
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    const std::string_view value =
        colon == std::string_view::npos ? std::string_view() : lines[i].substr(colon + 1);
    told.headers.emplace_back(lines[i].substr(0, colon), value);
  }
  return told;
}

// Decoded where it is an encoding, else as it is.
std::string Lenient(std::string_view text, bool plus_is_blank) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto decoded = proto::PercentDecode(text.substr(i, 3));
    if (text[i] == '%' && decoded && decoded->size() == 1) {
      bytes += *decoded;
      i += 2;
    } else {
      bytes += plus_is_blank && text[i] == '+' ? ' ' : text[i];
    }
  }
  return bytes;
}

void CheckSpelling(std::string_view text, std::string_view keep) {
  const std::optional<std::string> decoded = proto::PercentDecode(text);
  CHECK(decoded.has_value(), "an encoding that cannot be read");
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      CHECK(proto::IsUnreserved(text[i]) || keep.find(text[i]) != std::string_view::npos,
            "a byte that must be encoded is not");
      continue;
    }
    const std::string_view triple = text.substr(i, 3);
    CHECK(std::none_of(triple.begin(), triple.end(), [](char c) { return c >= 'a' && c <= 'f'; }),
          "lower-case digits");
    CHECK(!proto::IsUnreserved((*proto::PercentDecode(triple))[0]), "encoded without need");
    i += 2;
  }
}

void CheckPath(std::string_view path) {
  const std::string normal = sigv4::NormalizePath(path);
  CHECK(normal.starts_with('/') && normal.find("//") == std::string::npos, "not normal");
  CHECK(sigv4::NormalizePath(normal) == normal, "normalised twice, a path changes");
  for (const std::string_view segment : base::Split(normal, '/')) {
    CHECK(segment != "." && segment != "..", "a dot segment is left");
  }
  const std::string others = sigv4::CanonicalPath(path, sigv4::PathForm::kOthers);
  CheckSpelling(others, "/");
  CHECK(proto::PercentDecode(others) == normal, "a path that is another when it is decoded");
  const std::string s3 = sigv4::CanonicalPath(path, sigv4::PathForm::kS3);
  CheckSpelling(s3, "/");
  CHECK(sigv4::CanonicalPath(s3, sigv4::PathForm::kS3) == s3, "S3's form has a form");
  if (!path.empty()) {
    CHECK(proto::PercentDecode(s3) == Lenient(path, false), "S3 would find another name");
  }
}

void CheckQuery(std::string_view query) {
  using Pair = std::pair<std::string, std::string>;
  std::vector<Pair> expected;
  for (const std::string_view part : base::Split(query, '&')) {
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    expected.emplace_back(Lenient(part.substr(0, equals), true), Lenient(value, true));
  }
  const std::string canonical = sigv4::CanonicalQuery(query);
  CheckSpelling(canonical, "&=");
  CHECK(sigv4::CanonicalQuery(canonical) == canonical, "the form of a query has a form");
  std::vector<Pair> found;
  Pair last;
  for (const std::string_view part : base::Split(canonical, '&')) {
    if (canonical.empty()) break;
    CHECK(std::count(part.begin(), part.end(), '=') == 1, "not one '=' in each");
    const size_t equals = part.find('=');
    const Pair encoded(part.substr(0, equals), part.substr(equals + 1));
    CHECK(last <= encoded, "not sorted");
    last = encoded;
    found.emplace_back(*proto::PercentDecode(encoded.first), *proto::PercentDecode(encoded.second));
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  CHECK(found == expected, "other parameters than were given");
}

std::vector<Header> CheckHeaders(const std::vector<Header>& headers) {
  std::vector<Header> canonical = sigv4::CanonicalHeaders(headers);
  for (size_t i = 0; i < canonical.size(); ++i) {
    const auto& [name, value] = canonical[i];
    CHECK(i == 0 || canonical[i - 1].first < name, "names not sorted, or twice");
    CHECK(base::ToLower(name) == name, "a name in upper case");
    CHECK(value.find("  ") == std::string::npos && !value.starts_with(' ') &&
              !value.ends_with(' ') && value.find_first_of("\t\r\n") == std::string::npos,
          "a value with blanks that do not count");
  }
  CHECK(sigv4::CanonicalHeaders(canonical) == canonical, "the form of headers has a form");
  return canonical;
}

void CheckLines(const sigv4::Request& request, const std::vector<Header>& canonical) {
  const std::string text = sigv4::CanonicalRequest(request);
  const std::vector<std::string_view> lines = base::Split(text, '\n');
  CHECK(lines.size() == canonical.size() + 6, "a canonical request of other lines");
  CHECK(lines[0] == request.method, "another method");
  CHECK(lines[1] == sigv4::CanonicalPath(request.path, request.path_form), "another path");
  CHECK(lines[2] == sigv4::CanonicalQuery(request.query), "another query");
  for (size_t i = 0; i < canonical.size(); ++i) {
    CHECK(lines[i + 3] == canonical[i].first + ":" + canonical[i].second, "another header");
  }
  CHECK(lines[canonical.size() + 3].empty(), "no end of the headers");
  CHECK(lines[canonical.size() + 4] == sigv4::SignedHeaders(canonical), "another list of headers");
  CHECK(lines.back() == request.payload_sha256_hex, "another body");
}

void CheckSigned(Told told, sigv4::PathForm form) {
  const std::string payload = crypto::Sha256Hex(told.body);
  sigv4::Request request = {told.method, told.path, told.query, told.headers, payload, form};
  CheckLines(request, CheckHeaders(told.headers));

  const sigv4::Scope scope = {"us-east-1", "service"};
  const sigv4::Key key = {"AKIDEXAMPLE", "secret-that-shows", "token"};
  const int64_t now = static_cast<int64_t>(Hash(told.method) % 4000000000);
  told.headers.emplace_back("Host", "h");
  request.headers = told.headers;
  const std::vector<Header> added = sigv4::Sign(request, scope, key, now);
  CHECK(added.back().first == "Authorization", "Authorization does not come last");
  // Unless a header's name has it, which fuzzers find out.
  CHECK(added.back().second.find(key.secret_access_key) == std::string::npos ||
            sigv4::SignedHeaders(CheckHeaders(told.headers)).find(key.secret_access_key) !=
                std::string::npos,
        "a secret is shown");
  CHECK(sigv4::Sign(request, scope, key, now) == added, "signed twice, it is another signature");
  for (auto& [name, value] : told.headers) {
    name = base::ToLower(name);
    value = " " + value + "\t";
  }
  told.headers.emplace_back("Via", told.body);
  told.headers.emplace_back("Authorization", told.body);
  request.headers = told.headers;
  CHECK(sigv4::Sign(request, scope, key, now) == added, "what must not matter does");
}

void CheckDates(std::string_view text) {
  const std::optional<int64_t> amz = sigv4::ParseAmzDate(text);
  if (amz && *amz >= 0 && text.substr(13, 2) != "60") {
    CHECK(sigv4::FormatAmzDate(*amz) == text, "a date is written otherwise than it was read");
  }
  const std::optional<int64_t> http = sigv4::ParseHttpDate(text);
  if (http) CHECK(text.size() == 29 && text.ends_with(" GMT"), "a date of another form");
  if (http && *http >= 0 && text.substr(23, 2) != "60") {
    const std::string written = sigv4::FormatAmzDate(*http);
    CHECK(written.substr(0, 4) == text.substr(12, 4) && written.substr(6, 2) == text.substr(5, 2),
          "another day");
    CHECK(written.substr(9, 2) == text.substr(17, 2) && written.substr(11, 2) == text.substr(20, 2),
          "another hour");
  }
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  namespace proto = leasehold::proto;
  const std::string_view input = View(data, size);
  CHECK(proto::PercentDecode(proto::PercentEncode(input)) == input, "not there and back");
  CheckDates(input);
  const Told told = Read(input);
  CheckPath(told.path);
  CheckQuery(told.query);
  CheckSigned(told,
              Hash(input) % 2 == 0 ? proto::sigv4::PathForm::kS3 : proto::sigv4::PathForm::kOthers);
  return 0;
}
