#include "work_pool.hpp"

#include <algorithm>

namespace catchment::optimizer {

WorkPool::WorkPool(std::size_t threads) {
  for (std::size_t i = 1; i < threads; ++i) helpers_.emplace_back([this] { help(); });
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard guard(lock_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void WorkPool::run(std::size_t count, const std::function<void(std::size_t, std::size_t)>& body) {
  const std::lock_guard turn(turn_);
  if (helpers_.empty() || count < 2) {
    if (count > 0) body(0, count);
    return;
  }
  {
    const std::lock_guard guard(lock_);
    body_ = &body;
    count_ = count;
    // Several pieces a thread: one that is interrupted holds up the others by a piece at most.
    grain_ = std::max<std::size_t>(1, count / (8 * threads()));
    next_.store(0, std::memory_order_relaxed);
    running_ = helpers_.size();
    ++round_;
  }
  wake_.notify_all();
  work();
  std::unique_lock guard(lock_);
  finished_.wait(guard, [this] { return running_ == 0; });
}

void WorkPool::work() {
  for (;;) {
    const std::size_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
    if (begin >= count_) return;
    (*body_)(begin, std::min(begin + grain_, count_));
  }
}

void WorkPool::help() {
  std::size_t seen = 0;
  std::unique_lock guard(lock_);
  for (;;) {
    wake_.wait(guard, [&] { return closing_ || round_ != seen; });
    if (closing_) return;
    seen = round_;
    guard.unlock();
    work();
    guard.lock();
    if (--running_ == 0) finished_.notify_one();
  }
}

}  // namespace catchment::optimizer
