#include "timer.hpp"

#include <utility>

namespace catchment::server {

Timer::Timer() : thread_([this] { run(); }) {}

Timer::~Timer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void Timer::after(Clock::duration wait, std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  calls_.emplace(Clock::now() + wait, std::move(call));
  changed_.notify_one();
}

void Timer::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (calls_.empty()) {
      changed_.wait(lock);
    } else if (const auto due = calls_.begin()->first; due > Clock::now()) {
      changed_.wait_until(lock, due);
    } else {
      const auto call = std::move(calls_.begin()->second);
      calls_.erase(calls_.begin());
      lock.unlock();
      call();
      lock.lock();
    }
  }
}

}  // namespace catchment::server
