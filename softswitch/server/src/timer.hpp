// Calls that are due later, on one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace catchment::server {

class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  Timer();
  // Drops what is not due yet.
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Calls `call` once, after `wait`; it must be short.
  void after(Clock::duration wait, std::function<void()> call);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, std::function<void()>> calls_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace catchment::server
