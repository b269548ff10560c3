#include "last_resort.hpp"

#include <unistd.h>

#include <utility>

namespace catchment::server {

LastResort::LastResort(std::chrono::milliseconds patience, std::function<void()> say)
    : thread_([this, patience, say = std::move(say)] {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, patience, [this] { return ended_; })) {
          say();
          _exit(0);
        }
      }) {}

LastResort::~LastResort() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace catchment::server
