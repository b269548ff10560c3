// The answer to one Read, written as fast as its client takes it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "connections.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "timer.hpp"

namespace catchment::server {

// A client that takes nothing of its answer for 10 s is cut off.
class ReadCall final : public grpc::ServerWriteReactor<p4::v1::ReadResponse>,
                       public std::enable_shared_from_this<ReadCall> {
 public:
  // `unsent` counts the bytes of all answers that are not taken yet; what is passed by reference
  // must outlive the call.
  ReadCall(grpc::CallbackServerContext& context, Timer& timer, std::atomic<std::size_t>& unsent,
           Connections& connections);
  ~ReadCall() override;

  // The call keeps itself until it is over.
  void start() { self_ = shared_from_this(); }

  // Writes the messages, then the status.
  void answer(std::vector<p4::v1::ReadResponse> responses, grpc::Status status);

  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  void advance();
  void watch(std::size_t seen);

  grpc::CallbackServerContext& context_;
  Timer& timer_;
  std::atomic<std::size_t>& unsent_;
  Connections& connections_;

  std::mutex mutex_;  // guards what follows
  std::vector<p4::v1::ReadResponse> responses_;
  std::size_t next_ = 0;
  std::size_t bytes_ = 0;
  bool done_ = false;
  grpc::Status status_;
  std::shared_ptr<ReadCall> self_;  // until OnDone()
};

}  // namespace catchment::server
