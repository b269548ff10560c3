#include "counted_call.hpp"

#include <chrono>
#include <utility>

#include "unsent_messages.hpp"

namespace catchment::server {

namespace {

constexpr auto kTimeout = std::chrono::seconds(10);

// The slice has the text itself, so that an answer is in memory once.
grpc::Slice slice_of(std::string text) {
  auto* kept = new std::string(std::move(text));
  return {kept->data(), kept->size(), [](void* one) { delete static_cast<std::string*>(one); },
          kept};
}

}  // namespace

CountedCall::CountedCall(grpc::CallbackServerContext& context, Timer& timer,
                         std::atomic<std::size_t>& unsent, Connections& connections,
                         grpc::ByteBuffer& response)
    : context_(context),
      timer_(timer),
      unsent_(unsent),
      connections_(connections),
      response_(response) {}

void CountedCall::hold(std::string message) {
  const std::lock_guard lock(mutex_);
  UnsentMessages::count(unsent_, message.size());
  bytes_ = message.size();
  const grpc::Slice slice = slice_of(std::move(message));
  response_ = grpc::ByteBuffer(&slice, 1);
}

void CountedCall::answer(const grpc::Status& status) {
  timer_.after(kTimeout, [weak = weak_from_this()] {
    if (const auto call = weak.lock()) {
      const std::lock_guard lock(call->mutex_);
      if (!call->done_) {
        call->context_.TryCancel();
      }
    }
  });
  Finish(status);
}

void CountedCall::OnDone() {
  std::shared_ptr<CountedCall> self;
  const std::lock_guard lock(mutex_);
  unsent_ -= bytes_;
  connections_.sent(context_.peer(), bytes_);
  done_ = true;
  self.swap(self_);  // outlives the lock
}

}  // namespace catchment::server
