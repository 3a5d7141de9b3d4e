// A second reader of HTTP/1 messages, for oracles only: small, whole-buffer, strict to the letter
// of RFC 9112 and of the table of vectors, and sharing no code with proto/http1.h. It refuses what
// that table refuses. What the product accepts, this must accept, with the same border between
// messages: where two readers disagree a request can be smuggled. Not fast, not a limit-keeper.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::fuzz {

struct RefField {
  std::string name;
  std::string value;
  bool operator==(const RefField&) const = default;
};

struct RefMessage {
  // Of a request; of an answer: status.
  std::string method;
  std::string target;
  int status = 0;
  int minor = 1;
  std::vector<RefField> fields;
  bool chunked = false;
  bool until_close = false;
  bool head_done = false;  // the rest is the front of one
  size_t head_size = 0;    // in bytes, once it is done
  std::string body;
  std::vector<RefField> trailers;
  size_t size = 0;  // in bytes, with blank lines before it

  // How many fields have this name (lower case), and the value of the last.
  size_t Count(std::string_view name, std::string* value = nullptr) const;
};

enum class RefKind { kRequest, kAnswer, kAnswerToHead };
enum class RefRead { kMessage, kMore, kBad };

// The message at the front of `bytes`; `ended`: nothing follows them. kMore: a front of one, of
// which *message tells as much as there is.
RefRead ReadReference(std::string_view bytes, RefKind kind, bool ended, RefMessage* message);

std::string LowerCase(std::string_view text);
// Lower case with each sign taken for '-', as a CGI-style server folds names.
std::string FoldName(std::string_view name);
// The tokens of a comma-separated list, blanks off, in lower case.
std::vector<std::string> ListTokens(std::string_view list);

}  // namespace leasehold::fuzz
