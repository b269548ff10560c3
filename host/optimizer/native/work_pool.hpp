// Threads that share one loop at a time with their caller.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace catchment::optimizer {

class WorkPool {
 public:
  // `threads` in all, the calling one included; at least 1.
  explicit WorkPool(std::size_t threads);
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;
  ~WorkPool();

  std::size_t threads() const { return helpers_.size() + 1; }

  // Calls body(begin, end) on ranges that together are 0..count, on all threads; returns when all
  // are done.  Calls from several threads take turns.  `body` must not throw.
  void run(std::size_t count, const std::function<void(std::size_t, std::size_t)>& body);

 private:
  void help();
  void work();

  std::mutex turn_;
  std::mutex lock_;
  std::condition_variable wake_;
  std::condition_variable finished_;
  const std::function<void(std::size_t, std::size_t)>* body_ = nullptr;
  std::size_t count_ = 0;
  std::size_t grain_ = 1;
  std::atomic<std::size_t> next_{0};
  std::size_t running_ = 0;
  std::size_t round_ = 0;
  bool closing_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace catchment::optimizer
