#include "entity_messages.hpp"

#include <memory>
#include <string>
#include <utility>

namespace catchment::server {

namespace {

// Clients take messages of at most 4 MB by default.
constexpr std::size_t kBytesPerMessage = 128 << 10;
constexpr std::size_t kEntityOverhead = 6;  // tag and length

}  // namespace

p4::v1::Entity& EntityMessages::add() {
  settle();
  last_ = filling_.add_entities();
  return *last_;
}

void EntityMessages::finish() {
  settle();
  if (filling_.entities_size() != 0) {
    hand_on();
  }
}

// The entity that was filled in goes into a message of its own where it is too much for the last.
void EntityMessages::settle() {
  if (last_ == nullptr) {
    return;
  }
  const std::size_t size = last_->ByteSizeLong() + kEntityOverhead;
  last_ = nullptr;
  if (bytes_ != 0 && bytes_ + size > kBytesPerMessage) {
    std::unique_ptr<p4::v1::Entity> moved(filling_.mutable_entities()->ReleaseLast());
    hand_on();
    filling_.mutable_entities()->AddAllocated(moved.release());
  }
  bytes_ += size;
}

void EntityMessages::hand_on() {
  std::string message = filling_.SerializeAsString();
  filling_.Clear();
  bytes_ = 0;
  messages_.push(std::move(message));
}

}  // namespace catchment::server
