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
          paid();
          return true;
        }
        __builtin_ia32_pause();
      }
      const auto looked = Clock::now() - since_;
      if (looked >= limit_) {
        if (limit_ == kMost) {
          give_up();
        }
        return false;
      }
      if (looked >= kAlone) {
        sched_yield();  // the other side may be waiting for this processor
        if (Clock::now() - since_ - looked > kSomebodysTurn) {
          // More to do than processors: a sleeper is woken sooner than a looker's turn comes.
          give_up();
          return ready();
        }
      }
    }
  }
  /// After a sleep that followed look().
  void woken() {
    if (Clock::now() - since_ > kMost) {
      limit_ = std::max(limit_ / 2, kLeast);
    } else if (sleeps_left_ > 0) {
      --sleeps_left_;
    } else {
      limit_ = std::min(limit_ * 2, kMost);
    }
  }

 private:
  static constexpr Clock::duration kLeast = std::chrono::microseconds(1);
  static constexpr Clock::duration kMost = std::chrono::microseconds(50);
  static constexpr Clock::duration kAlone = std::chrono::microseconds(2);
  static constexpr Clock::duration kSomebodysTurn = std::chrono::microseconds(500);
  static constexpr int kFewSleeps = 16;
  static constexpr int kManySleeps = 1024;
  static constexpr int kLooksPerClock = 16;

  void paid() {
    limit_ = std::min(limit_ * 2, kMost);
    sleeps_ = kFewSleeps;
  }
  /// Looked as long as we may, for nothing. The other side may even be waiting for this processor:
  /// sleep at once the next times, and try again more and more seldom.
  void give_up() {
    limit_ = kLeast;
    sleeps_left_ = sleeps_;
    sleeps_ = std::min(2 * sleeps_, kManySleeps);
  }

  Clock::time_point since_;
  Clock::duration limit_ = kMost;
  int sleeps_ = kFewSleeps;  // after the next give_up()
  int sleeps_left_ = 0;      // that do not lengthen the looks
};

}  // namespace catchment::shm
