#include "session.hpp"

#include <utility>

namespace catchment::server {

namespace {
constexpr std::size_t kMaxQueued = 4096;
}

Session::Session(Stream& stream, std::string peer)
    : stream_(stream), peer_(std::move(peer)), writer_([this] { write_queue(); }) {}

Session::~Session() { close(); }

void Session::send(p4::v1::StreamMessageResponse message) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(message));
  changed_.notify_one();
}

bool Session::offer(p4::v1::StreamMessageResponse message) {
  const std::lock_guard lock(mutex_);
  if (closing_ || queue_.size() >= kMaxQueued) {
    return false;
  }
  queue_.push_back(std::move(message));
  changed_.notify_one();
  return true;
}

void Session::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_one();
  }
  if (writer_.joinable()) {
    writer_.join();
  }
}

void Session::write_queue() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) {
      return;
    }
    const auto message = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const bool written = stream_.Write(message);
    lock.lock();
    if (!written) {
      closing_ = true;
      queue_.clear();
      return;
    }
  }
}

}  // namespace catchment::server
