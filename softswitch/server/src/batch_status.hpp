// The status of a batch: one p4.v1.Error per update (or read request), as the specification packs
// it.
#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rpc_error.hpp"

namespace catchment::server {

// Collects the failures of a batch; costs nothing for the updates that go well.
class BatchStatus {
 public:
  explicit BatchStatus(std::size_t size) : size_(size) {}

  void fail(std::size_t index, const RpcError& error) {
    failures_.push_back({index, error.code(), error.what()});
  }
  // One failed, and so none was done: the others are ABORTED.
  void fail_whole(std::size_t index, const RpcError& error);
  bool ok() const { return failures_.empty(); }

  // Returns OK, or UNKNOWN with the details. gRPC clients take at most 8 KB of status by default
  // and replace a longer one by an error without any detail, so one that would be longer than
  // `max_bytes` gets its messages shortened, and then is cut to the first entries that fit; the
  // status message then says so. It has the number of failures and the first of them, or
  // the one for which none was done. `what` names the members of the batch ("updates").
  grpc::Status status(const std::string& what, std::size_t max_bytes) const;

 private:
  struct Failure {
    std::size_t index;
    grpc::StatusCode code;
    std::string message;
  };

  std::string details(const std::string& message, std::size_t entries,
                      std::size_t message_limit) const;

  std::size_t size_;
  std::vector<Failure> failures_;
  std::optional<std::size_t> cause_;  // the place in failures_ of what has all others ABORTED
};

}  // namespace catchment::server
