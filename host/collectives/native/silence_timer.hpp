// Says when a rank asks for missing sums although no later sum has shown that they are missing: the
// last vectors of a window, or of all, have no later ones.  Pure: times are nanoseconds that the
// caller passes.
#pragma once

#include <algorithm>

#include "retransmit_timer.hpp"

namespace catchment::host {

class SilenceTimer {
 public:
  // A sum came.
  void on_sum(Nanos now) { start(now); }
  // A later sum has shown that frames were lost.
  void on_loss(Nanos now) { lossy_until_ = now + kMemory; }
  // The silence was broken by asking: the next time later.
  void on_asked(Nanos now) {
    after_ = std::min(2 * after_, kLast);
    at_ = now + after_;
  }

  // It is time to ask; `waiting`: for the sum of something that was sent.
  bool expired(bool waiting, Nanos now) {
    if (!waiting) {
      at_ = kNever;
    } else if (at_ == kNever) {
      start(now);
    }
    return now >= at_;
  }
  Nanos deadline() const { return at_; }

 private:
  static constexpr Nanos kFirst = 1'000'000;
  static constexpr Nanos kLast = 8'000'000;
  // Where frames were lost lately, silence means one more loss rather than a rank that is late.
  static constexpr Nanos kFirstIfLossy = 200'000;
  static constexpr Nanos kMemory = 100'000'000;

  void start(Nanos now) {
    after_ = now < lossy_until_ ? kFirstIfLossy : kFirst;
    at_ = now + after_;
  }

  Nanos at_ = kNever;
  Nanos after_ = kFirst;
  Nanos lossy_until_ = 0;
};

}  // namespace catchment::host
