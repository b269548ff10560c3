// The answer to one Read, written as fast as its client takes it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "connections.hpp"
#include "timer.hpp"
#include "unsent_messages.hpp"

namespace catchment::server {

// A client that takes nothing of its answer for 10 s is cut off.
class ReadCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                       public std::enable_shared_from_this<ReadCall> {
 public:
  // `unsent` counts the bytes of all answers that are not taken yet; what is passed by reference
  // must outlive the call.
  ReadCall(grpc::CallbackServerContext& context, Timer& timer, std::atomic<std::size_t>& unsent,
           Connections& connections);

  // The call keeps itself until it is over.
  void start() { self_ = shared_from_this(); }

  // Returns where the messages of the answer go, before answer().
  UnsentMessages& messages() { return messages_; }

  // Writes the messages, then the status.
  void answer(grpc::Status status);

  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  void advance();
  void watch(std::size_t seen);

  grpc::CallbackServerContext& context_;
  Timer& timer_;
  Connections& connections_;

  std::mutex mutex_;  // guards what follows
  UnsentMessages messages_;
  grpc::ByteBuffer writing_;  // the first of them
  std::size_t taken_ = 0;     // messages
  bool done_ = false;
  grpc::Status status_;
  std::shared_ptr<ReadCall> self_;  // until OnDone()
};

}  // namespace catchment::server
