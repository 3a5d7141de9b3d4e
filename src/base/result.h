// Result<T>: a value or an Error, for everything the world may do to us. No exceptions cross a
// room's wall. Not for bugs (those are CHECK). Error messages name the object, the value, and what
// would be right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace leasehold::base {

// The closed list of kinds of failure. Code decides by kind; people read the message.
enum class ErrorCode {
  kInvalid,      // the input is wrong; the same call will fail again
  kNotFound,     // the named thing does not exist
  kConflict,     // somebody else changed it first, or the precondition does not hold
  kRefused,      // the other side said no for good: credentials, permission, wrong type, full
  kUnavailable,  // the other side cannot be reached or answered in error; may pass
  kTimeout,      // no answer in time; the work may or may not have been done
  kClosed,       // the connection or object was closed
  kLimit,        // a named limit of ours is reached
  kUnsupported,  // this system or peer cannot do it
  kInternal,     // the operating system failed us in an unclassified way
};

// Lower-case word of a code, for logs and JSON: "invalid", "not_found", ...
std::string_view ErrorCodeName(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }

  T& value() & {
    CHECK(ok(), "value() of a Result that holds an error");
    return *value_;
  }
  const T& value() const& {
    CHECK(ok(), "value() of a Result that holds an error");
    return *value_;
  }
  T&& value() && {
    CHECK(ok(), "value() of a Result that holds an error");
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    CHECK(!ok(), "error() of a Result that holds a value");
    return error_;
  }

 private:
  std::optional<T> value_;
  Error error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    CHECK(!ok(), "error() of a Result that holds no error");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace leasehold::base
