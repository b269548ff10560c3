#include "unsent_messages.hpp"

#include <utility>

#include "rpc_error.hpp"

namespace catchment::server {

namespace {

RpcError too_much(const std::string& what, std::size_t most, const std::string& advice) {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          what + " more than " + std::to_string(most >> 20) + " MiB: " + advice};
}

RpcError too_many_of_all() {
  return too_much("answers that clients have not taken have", UnsentMessages::kMostBytesOfAll,
                  "ask again later");
}

}  // namespace

void UnsentMessages::push(std::string message) {
  bytes_ += message.size();
  all_ += message.size();
  messages_.push_back(std::move(message));
  const bool too_long = bytes_ > kMostBytes;
  if (too_long || all_ > kMostBytesOfAll) {
    overflowed_ = true;
    clear();
    throw too_long ? too_much("the answer has", kMostBytes, "read fewer entities at a time")
                   : too_many_of_all();
  }
}

void UnsentMessages::count(std::atomic<std::size_t>& all, std::size_t bytes) {
  all += bytes;
  if (all > kMostBytesOfAll) {
    all -= bytes;
    throw too_many_of_all();
  }
}

void UnsentMessages::pop() {
  bytes_ -= messages_.front().size();
  all_ -= messages_.front().size();
  messages_.pop_front();
}

void UnsentMessages::clear() {
  all_ -= bytes_;
  bytes_ = 0;
  messages_.clear();
}

}  // namespace catchment::server
