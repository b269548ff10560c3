#include "notifier.hpp"

#include <utility>

#include "packet_codec.hpp"

namespace catchment::server {

namespace {
constexpr std::size_t kMaxQueued = 8192;
}

Notifier::Notifier(softswitch::Dataplane& dataplane, Arbiter& arbiter)
    : dataplane_(dataplane), arbiter_(arbiter), thread_([this] { run(); }) {
  dataplane_.on_packet_in([this](softswitch::PacketIn&& packet) {
    const std::lock_guard lock(mutex_);
    if (packets_.size() >= kMaxQueued) {
      ++dropped_;
      return;
    }
    packets_.push_back(std::move(packet));
    changed_.notify_one();
  });
}

Notifier::~Notifier() {
  dataplane_.on_packet_in(nullptr);
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void Notifier::use(std::shared_ptr<const Schema> schema) {
  const std::lock_guard lock(mutex_);
  schema_ = std::move(schema);
}

std::uint64_t Notifier::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void Notifier::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !packets_.empty(); });
    if (ending_) {
      return;
    }
    const softswitch::PacketIn packet = std::move(packets_.front());
    packets_.pop_front();
    const auto schema = schema_;
    lock.unlock();
    p4::v1::StreamMessageResponse message;
    if (schema != nullptr) {
      *message.mutable_packet() = encode_packet_in(packet.payload, *schema);
      for (const auto& session : arbiter_.primaries()) {
        session->offer(message);
      }
    }
    lock.lock();
  }
}

}  // namespace catchment::server
