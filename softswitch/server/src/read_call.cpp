#include "read_call.hpp"

#include <chrono>
#include <utility>

namespace catchment::server {

namespace {
constexpr auto kTimeout = std::chrono::seconds(10);
}

ReadCall::ReadCall(grpc::CallbackServerContext& context, Timer& timer,
                   std::atomic<std::size_t>& unsent, Connections& connections)
    : context_(context), timer_(timer), unsent_(unsent), connections_(connections) {}

ReadCall::~ReadCall() { unsent_ -= bytes_; }

void ReadCall::answer(std::vector<p4::v1::ReadResponse> responses, grpc::Status status) {
  const std::lock_guard lock(mutex_);
  responses_ = std::move(responses);
  status_ = std::move(status);
  for (const auto& response : responses_) {
    bytes_ += response.ByteSizeLong();
  }
  unsent_ += bytes_;
  if (!responses_.empty()) {
    watch(0);
  }
  advance();
}

// Looks later whether the client took any message since `seen` were written.
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
    if (call->next_ == seen) {
      call->context_.TryCancel();
    } else {
      call->watch(call->next_);
    }
  });
}

// The mutex is held.
void ReadCall::advance() {
  if (next_ < responses_.size()) {
    StartWrite(&responses_[next_]);
  } else {
    Finish(status_);
  }
}

void ReadCall::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  if (!ok) {
    return Finish({grpc::StatusCode::CANCELLED, "the client is gone"});
  }
  connections_.sent(context_.peer(), responses_[next_].ByteSizeLong());
  responses_[next_] = {};  // its memory goes
  ++next_;
  advance();
}

void ReadCall::OnDone() {
  std::shared_ptr<ReadCall> self;
  const std::lock_guard lock(mutex_);
  done_ = true;
  self.swap(self_);  // outlives the lock
}

}  // namespace catchment::server
