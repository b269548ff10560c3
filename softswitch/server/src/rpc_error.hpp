// The one exception type of the P4Runtime server: a canonical gRPC code and a message for the
// client.
#pragma once

#include <grpcpp/support/status.h>

#include <stdexcept>
#include <string>

namespace catchment::server {

// Thrown wherever a request, or one update of a batch, cannot be honoured. The message says what is
// wrong, in which object, and what would be right; it reaches the client unchanged.
class RpcError : public std::runtime_error {
 public:
  RpcError(grpc::StatusCode code, const std::string& message)
      : std::runtime_error(message), code_(code) {}

  grpc::StatusCode code() const { return code_; }
  grpc::Status status() const { return {code_, what()}; }

 private:
  grpc::StatusCode code_;
};

inline RpcError invalid_argument(const std::string& message) {
  return {grpc::StatusCode::INVALID_ARGUMENT, message};
}

inline RpcError not_found(const std::string& message) {
  return {grpc::StatusCode::NOT_FOUND, message};
}

inline RpcError out_of_range(const std::string& message) {
  return {grpc::StatusCode::OUT_OF_RANGE, message};
}

inline RpcError permission_denied(const std::string& message) {
  return {grpc::StatusCode::PERMISSION_DENIED, message};
}

inline RpcError unimplemented(const std::string& message) {
  return {grpc::StatusCode::UNIMPLEMENTED, message};
}

inline RpcError failed_precondition(const std::string& message) {
  return {grpc::StatusCode::FAILED_PRECONDITION, message};
}

}  // namespace catchment::server
