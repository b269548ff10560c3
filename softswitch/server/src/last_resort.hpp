// Ends the process when its orderly end does not come: a peer that was stopped in the data plane
// has the lock that everything else waits for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace catchment::server {

class LastResort {
 public:
  // Unless this is destroyed before, calls `say` after `patience` and ends the process with exit
  // code 0, without anything else.
  LastResort(std::chrono::milliseconds patience, std::function<void()> say);
  ~LastResort();
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace catchment::server
