#include "read_call.hpp"

#include <chrono>
#include <utility>

namespace catchment::server {

namespace {
constexpr auto kTimeout = std::chrono::seconds(10);
}

ReadCall::ReadCall(grpc::CallbackServerContext& context, Timer& timer,
                   std::atomic<std::size_t>& unsent, Connections& connections)
    : context_(context), timer_(timer), connections_(connections), messages_(unsent) {}

void ReadCall::answer(grpc::Status status) {
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
  if (!messages_.empty()) {
    watch(0);
  }
  advance();
}

// Looks later whether the client took any message since `seen` were taken.
void ReadCall::watch(std::size_t seen) {
  timer_.after(kTimeout, [weak = weak_from_this(), seen] {
    const auto call = weak.lock();
    if (call == nullptr) {
      return;
    }
    const std::lock_guard lock(call->mutex_);
    if (call->done_) {
      return;
    }
    if (call->taken_ == seen) {
      call->context_.TryCancel();
    } else {
      call->watch(call->taken_);
    }
  });
}

// The mutex is held.
void ReadCall::advance() {
  if (messages_.empty()) {
    Finish(status_);
    return;
  }
  const grpc::Slice slice(messages_.front());
  writing_ = grpc::ByteBuffer(&slice, 1);
  StartWrite(&writing_);
}

void ReadCall::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  if (!ok) {
    return Finish({grpc::StatusCode::CANCELLED, "the client is gone"});
  }
  connections_.sent(context_.peer(), messages_.front().size());
  messages_.pop();
  ++taken_;
  advance();
}

void ReadCall::OnDone() {
  std::shared_ptr<ReadCall> self;
  const std::lock_guard lock(mutex_);
  done_ = true;
  self.swap(self_);  // outlives the lock
}

}  // namespace catchment::server
