#include "batch_status.hpp"

#include <algorithm>
#include <bit>

#include "google/rpc/status.pb.h"
#include "p4/v1/p4runtime.pb.h"

namespace catchment::server {

namespace {

constexpr std::size_t kHeaders = 400;       // what else a status carries
constexpr std::size_t kEntryBytes = 40;     // a successful update takes at least that
constexpr std::size_t kLongMessage = 1024;  // characters of a message
constexpr std::size_t kShortMessage = 120;

// Binary metadata is sent in base64 to peers that do not take it raw.
std::size_t on_the_wire(const std::string& details) { return details.size() * 4 / 3 + 8; }

}  // namespace

void BatchStatus::fail_whole(std::size_t index, const RpcError& error) {
  const RpcError aborted(grpc::StatusCode::ABORTED,
                         "not done, because update " + std::to_string(index) + " failed");
  for (std::size_t k = 0; k < size_; ++k) {
    fail(k, k == index ? error : aborted);
  }
  cause_ = index;
}

std::string BatchStatus::details(const std::string& message, std::size_t entries,
                                 std::size_t message_limit) const {
  google::rpc::Status status;
  status.set_code(grpc::StatusCode::UNKNOWN);
  status.set_message(message);
  auto failure = failures_.begin();
  for (std::size_t index = 0; index < entries; ++index) {
    p4::v1::Error error;
    if (failure != failures_.end() && failure->index == index) {
      error.set_canonical_code(failure->code);
      error.set_message(failure->message.substr(0, message_limit));
      ++failure;
    }
    status.add_details()->PackFrom(error);
  }
  return status.SerializeAsString();
}

grpc::Status BatchStatus::status(const std::string& what, std::size_t max_bytes) const {
  if (ok()) {
    return grpc::Status::OK;
  }
  const Failure& told = failures_[cause_.value_or(0)];
  const std::string of_all = " of " + std::to_string(size_) + " " + what;
  std::string message =
      (cause_ ? "none" + of_all + " was done, because that at index "
              : std::to_string(failures_.size()) + of_all + " failed, the first at index ") +
      std::to_string(told.index) + (cause_ ? " failed: " : ": ") +
      told.message.substr(0, kLongMessage);
  // The message travels twice, once in the details.
  const std::size_t room = max_bytes - std::min(max_bytes / 2, 2 * message.size() + kHeaders);
  const std::size_t most = room / kEntryBytes;
  if (size_ <= most) {
    for (const std::size_t limit : {kLongMessage, kShortMessage}) {
      std::string packed = details(message, size_, limit);
      if (on_the_wire(packed) <= room) {
        return {grpc::StatusCode::UNKNOWN, message, packed};
      }
    }
  }
  message += " (details of the first ones only: the status is limited to " +
             std::to_string(max_bytes) + " bytes)";
  std::size_t fitting = 0;
  for (std::size_t step = std::bit_ceil(most + 1); step > 0; step /= 2) {
    const std::size_t tried = std::min(size_, fitting + step);
    if (on_the_wire(details(message, tried, kShortMessage)) <= room) {
      fitting = tried;
    }
  }
  return {grpc::StatusCode::UNKNOWN, message, details(message, fitting, kShortMessage)};
}

}  // namespace catchment::server
