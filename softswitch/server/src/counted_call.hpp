// A call whose one answer may be long: it counts among the answers that clients leave untaken.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "connections.hpp"
#include "timer.hpp"

namespace catchment::server {

// A client that has not taken its answer after 10 s is cut off.
class CountedCall final : public grpc::ServerUnaryReactor,
                          public std::enable_shared_from_this<CountedCall> {
 public:
  // `unsent` counts the bytes of all answers that are not taken yet; what is passed by reference
  // must outlive the call.
  CountedCall(grpc::CallbackServerContext& context, Timer& timer, std::atomic<std::size_t>& unsent,
              Connections& connections, grpc::ByteBuffer& response);

  // The call keeps itself until it is over.
  void start() { self_ = shared_from_this(); }

  // Takes the message that a good status brings, before answer(). Throws
  // RpcError(RESOURCE_EXHAUSTED), and takes nothing, when those of all clients become too many.
  void hold(std::string message);

  void answer(const grpc::Status& status);

  void OnDone() override;

 private:
  grpc::CallbackServerContext& context_;
  Timer& timer_;
  std::atomic<std::size_t>& unsent_;
  Connections& connections_;
  grpc::ByteBuffer& response_;

  std::mutex mutex_;  // guards what follows
  std::size_t bytes_ = 0;
  bool done_ = false;
  std::shared_ptr<CountedCall> self_;  // until OnDone()
};

}  // namespace catchment::server
