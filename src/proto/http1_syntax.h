// The door to llhttp: checks a whole head, or a whole block of trailers, and finds its fields. Not
// a framing authority: http1_parser.cc hands it exactly one block, ended by its empty line, and
// judges lengths and encodings itself. One per parser, reset for each block.
#pragma once

#include <llhttp.h>

#include <string_view>
#include <vector>

#include "proto/http1.h"

namespace leasehold::proto::http1 {

struct Syntax {
  explicit Syntax(bool request);
  Syntax(const Syntax&) = delete;
  Syntax& operator=(const Syntax&) = delete;

  // All views point into `block`. `fields` is filled up to `fields_max`. Returns 0, or the HTTP
  // status to answer, with `why` set.
  int CheckHead(std::string_view block, std::vector<Header>& fields, size_t fields_max);
  int CheckTrailers(std::string_view block, std::vector<Header>& fields, size_t fields_max);

  std::string_view target;  // of the last head
  const char* why = "";

 private:
  friend struct SyntaxCallbacks;
  int Run(llhttp_type_t type, std::string_view preface, std::string_view block);
  int Explain(llhttp_errno_t error);
  int AddName(std::string_view name);
  int AddValue(std::string_view piece);

  const bool request_;
  bool headers_complete_ = false;
  bool value_begun_ = false;
  bool too_many_ = false;
  size_t fields_max_ = 0;
  std::vector<Header>* fields_ = nullptr;
  llhttp_t llhttp_;
};

}  // namespace leasehold::proto::http1
