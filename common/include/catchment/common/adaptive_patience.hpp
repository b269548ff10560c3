// Patience that learns how long to spin: longer while spinning finds something, shorter while it
// does not.  For a waiter that cannot know what its other side does between two answers.
//
// When the waiter has spun for as long as it may and found nothing, or a yield came back late
// (patience.hpp), it sleeps at once the next times, and tries spinning again more and more seldom:
// its other side may be waiting for this very processor.
#pragma once

#include <algorithm>

#include "catchment/common/patience.hpp"

namespace catchment {

struct AdaptivePatienceSettings {
  Nanos least_spin;
  Nanos most_spin;
  Nanos yield_after;
  Nanos late_yield;
  int few_sleeps;   // without spinning, after the first time in vain
  int many_sleeps;  // at most
};

/// A peer at a shared-memory port of the switch; the switch spins as long (kSwitchPatience).
inline constexpr AdaptivePatienceSettings kPeerPatience{.least_spin = 1 * kMicrosecond,
                                                        .most_spin = kSwitchPatience.spin,
                                                        .yield_after = kSwitchPatience.yield_after,
                                                        .late_yield = kSwitchPatience.late_yield,
                                                        .few_sleeps = 16,
                                                        .many_sleeps = 1024};

class AdaptivePatience {
 public:
  explicit AdaptivePatience(AdaptivePatienceSettings settings)
      : settings_(settings), spin_(settings.most_spin), sleeps_(settings.few_sleeps) {}

  /// The waiter found nothing at its first look.
  void begin(Nanos now) { began_ = now; }

  Waiting next(Nanos now) {
    const Nanos looked = now - began_;
    if (looked >= spin_) {
      if (spin_ == settings_.most_spin) {
        give_up();
      }
      return Waiting::kSleep;
    }
    return looked >= settings_.yield_after ? Waiting::kYield : Waiting::kSpin;
  }

  /// What was waited for came while the waiter spun.
  void found() {
    spin_ = std::min(spin_ * 2, settings_.most_spin);
    sleeps_ = settings_.few_sleeps;
  }

  /// The waiter yielded at `before` and had the processor back at `after`; whether it now sleeps.
  bool yielded(Nanos before, Nanos after) {
    if (after - before <= settings_.late_yield) {
      return false;
    }
    give_up();
    return true;
  }

  /// The waiter has slept and was woken.
  void woken(Nanos now) {
    if (now - began_ > settings_.most_spin) {
      spin_ = std::max(spin_ / 2, settings_.least_spin);
    } else if (sleeps_left_ > 0) {
      --sleeps_left_;
    } else {
      spin_ = std::min(spin_ * 2, settings_.most_spin);
    }
  }

 private:
  void give_up() {
    spin_ = settings_.least_spin;
    sleeps_left_ = sleeps_;
    sleeps_ = std::min(2 * sleeps_, settings_.many_sleeps);
  }

  AdaptivePatienceSettings settings_;
  Nanos began_ = 0;
  Nanos spin_;
  int sleeps_;           // after the next time in vain
  int sleeps_left_ = 0;  // until spinning is tried for longer again
};

/// Spins and yields until `ready()` is true (then true), or until the patience says to sleep; then
/// the caller sleeps and calls patience.woken().
template <class Machine = Processor, class Ready>
bool spin_until(AdaptivePatience& patience, Ready ready) {
  constexpr int kLooksPerClock = 16;
  if (ready()) {
    return true;
  }
  patience.begin(Machine::now());
  while (true) {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (ready()) {
        patience.found();
        return true;
      }
      Machine::relax();
    }
    const Nanos now = Machine::now();
    const Waiting next = patience.next(now);
    if (next == Waiting::kSleep) {
      return false;
    }
    if (next == Waiting::kYield) {
      Machine::yield();
      if (patience.yielded(now, Machine::now())) {
        return ready();
      }
    }
  }
}

}  // namespace catchment
