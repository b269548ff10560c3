// How long to look before sleeping. Sleeping and being woken costs tens of microseconds, looking
// costs a processor; so looking grows while it pays and shrinks when it does not.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace catchment::shm {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  /// Looks until `ready()` is true (then true) or it was long enough (then sleep, and tell
  /// woken()).
  template <class Ready>
  bool look(Ready ready) {
    if (ready()) {
      return true;
    }
    since_ = Clock::now();
    while (true) {
      for (int i = 0; i < kLooksPerClock; ++i) {
        if (ready()) {
          longer();
          return true;
        }
        __builtin_ia32_pause();
      }
      const auto looked = Clock::now() - since_;
      if (looked >= limit_) {
        return false;
      }
      if (looked >= kAlone) {
        sched_yield();  // the other side may be waiting for this processor
      }
    }
  }
  /// After a sleep that followed look().
  void woken() {
    if (Clock::now() - since_ <= kMost) {
      longer();
    } else {
      limit_ = std::max(limit_ / 2, kLeast);
    }
  }

 private:
  static constexpr Clock::duration kLeast = std::chrono::microseconds(1);
  static constexpr Clock::duration kMost = std::chrono::microseconds(50);
  static constexpr Clock::duration kAlone = std::chrono::microseconds(2);
  static constexpr int kLooksPerClock = 16;

  void longer() { limit_ = std::min(limit_ * 2, kMost); }

  Clock::time_point since_;
  Clock::duration limit_ = kMost;
};

}  // namespace catchment::shm
