// Writes one at a time, reads in parallel, neither starved: what makes batches serializable to
// clients.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace catchment::server {

// The packet path never takes this lock; it only orders control requests among themselves.
class StateLock {
 public:
  using Exclusive = std::unique_lock<std::shared_mutex>;
  using Shared = std::shared_lock<std::shared_mutex>;

  Exclusive exclusive() {
    const std::lock_guard turn(turnstile_);
    return Exclusive(state_);
  }

  Shared shared() {
    const std::lock_guard turn(turnstile_);
    return Shared(state_);
  }

 private:
  std::mutex turnstile_;  // a waiting writer keeps later readers out
  std::shared_mutex state_;
};

}  // namespace catchment::server
