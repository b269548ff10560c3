// The one error type of the control-facing API: a code (P4Runtime's, which are gRPC's) and a reason
// for a person.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace catchment::softswitch {

/// Numbers equal those of google.rpc.Code, so that a server can pass them on.
enum class StatusCode : std::uint8_t {
  ok = 0,
  unknown = 2,
  invalid_argument = 3,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
};

/// Outcome of one control operation. `message` says what was wrong, where, and what would be
/// accepted.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] bool ok() const { return code_ == StatusCode::ok; }
  [[nodiscard]] StatusCode code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::ok;
  std::string message_;
};

/// A value or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const T& value() const { return value_.value(); }
  [[nodiscard]] T& value() { return value_.value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace catchment::softswitch
