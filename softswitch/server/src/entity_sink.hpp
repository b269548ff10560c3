// Collects the entities of a Read into messages of bounded size.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "p4/v1/p4runtime.pb.h"
#include "rpc_error.hpp"

namespace catchment::server {

// Clients take messages of at most 4 MB by default, and reads have no bound.
class EntitySink {
 public:
  // Returns the message to fill in; the reference is good until the next call. Throws
  // RpcError(RESOURCE_EXHAUSTED) when it is full.
  p4::v1::Entity& add() {
    settle();
    if (is_full()) {
      throw RpcError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                     "the answer has more than " + std::to_string(kMostBytes >> 20) +
                         " MiB: read fewer entities at a time");
    }
    if (responses_.empty()) {
      responses_.emplace_back();
    }
    last_ = responses_.back().add_entities();
    return *last_;
  }

  bool is_full() const { return all_bytes_ > kMostBytes; }

  const std::vector<p4::v1::ReadResponse>& responses() const { return responses_; }

  // Returns the messages, and is empty again.
  std::vector<p4::v1::ReadResponse> take() {
    settle();
    bytes_ = all_bytes_ = 0;
    return std::exchange(responses_, {});
  }

 private:
  static constexpr std::size_t kBytesPerMessage = 128 << 10;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of all messages
  static constexpr std::size_t kEntityOverhead = 6;                 // tag and length

  // The entity that was filled in goes into a message of its own where it is too much for the last.
  void settle() {
    if (last_ == nullptr) {
      return;
    }
    const std::size_t size = last_->ByteSizeLong() + kEntityOverhead;
    if (bytes_ != 0 && bytes_ + size > kBytesPerMessage) {
      p4::v1::Entity* moved = responses_.back().mutable_entities()->ReleaseLast();
      responses_.emplace_back().mutable_entities()->AddAllocated(moved);
      bytes_ = 0;
    }
    bytes_ += size;
    all_bytes_ += size;
    last_ = nullptr;
  }

  std::vector<p4::v1::ReadResponse> responses_;
  p4::v1::Entity* last_ = nullptr;  // that of the last call of add()
  std::size_t bytes_ = 0;           // of the last message
  std::size_t all_bytes_ = 0;
};

}  // namespace catchment::server
