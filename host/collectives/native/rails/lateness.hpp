// Whether a rail that has not brought a round, which another one has, is broken or only late.
//
// Pure: times are nanoseconds that the caller passes.
#pragma once

#include <algorithm>

#include "catchment/common/clock.hpp"

namespace catchment::host::rails {

class Lateness {
 public:
  // The round has come over another rail at `now`, where it `took` so long, among ranks whose
  // threads are run so `late`, some of them: no less may be true of a thread that this rail needs.
  // A rail over which no round has come yet, not `known`, may still be making its connections.
  void start(Nanos now, Nanos took, Nanos late, bool known) {
    since_ = came_ = now;
    patience_ = known ? std::clamp(kTimes * std::max(took, late), kLeast, kMost) : kOpening;
    excuse_ = patience_;
  }

  // The thread that looks has `slept` longer than it meant to, which says nothing about the rail.
  // A thread that is hardly ever run has to decide as well, so the patience at most doubles.
  void excuse(Nanos slept) {
    if (since_ == kNever || slept <= 0) return;
    const Nanos more = std::min(slept, excuse_);
    since_ += more;
    excuse_ -= more;
  }

  // A sum came over the rail at `at`, or a word of each rank by then, so it is alive, and the round
  // waits behind other frames or for a thread.  A rail that goes on so and never brings a round is
  // late in the end.
  void heard(Nanos at) {
    if (since_ != kNever) since_ = std::max(since_, std::min(at, came_ + kLongestQueue));
  }

  bool late(Nanos now) const { return since_ != kNever && now - since_ >= patience_; }

 private:
  // On a machine that is slow to run its threads a rail may be so many times later than the round
  // took over the other one, or than a thread was run: a round needs several of them in turn.
  static constexpr Nanos kTimes = 4;
  static constexpr Nanos kLeast = 50 * kMillisecond;
  static constexpr Nanos kMost = 400 * kMillisecond;
  static constexpr Nanos kOpening = kSecond;
  static constexpr Nanos kLongestQueue = 5 * kSecond;

  Nanos came_ = kNever;  // over another rail
  Nanos since_ = kNever;
  Nanos patience_ = 0;
  Nanos excuse_ = 0;  // that is left
};

}  // namespace catchment::host::rails
