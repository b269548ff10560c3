// Whether callers give a hub's engines their turns, so that its own thread need not.
//
// The thread keeps out of the way while a caller waits, and for a while after that, for one that
// has waited often waits again soon. Where callers wait for each operation as soon as they have
// begun it, the thread keeps out of the way of what has just been begun, too: it would take the
// engines from the caller that comes for them.
#pragma once

#include <algorithm>
#include <atomic>

#include "catchment/common/clock.hpp"

namespace catchment::host {

class Attendance {
 public:
  // A caller has begun something, and may wait for it. Whether callers are expected.
  bool begin(Nanos now) {
    begun_at_.store(now);
    return given(now);
  }

  // A caller waits, from `now` on, for what was begun by `begun`.
  void come(Nanos begun, Nanos now) {
    waiting_.fetch_add(1);
    at_once_.store(now - begun < kAtOnce);
  }
  // Whether it was the last one.
  bool leave(Nanos now) {
    left_at_.store(now);
    return waiting_.fetch_sub(1) == 1;
  }

  bool waiting() const { return waiting_.load() != 0; }

  // Whether callers run the protocol, or are expected to.
  bool given(Nanos now) const {
    return waiting() ||
           now - (at_once_.load() ? std::max(begun_at_.load(), left_at_.load()) : left_at_.load()) <
               kGrace;
  }

  // The hub's own thread runs the protocol. Callers that have begun something and did not come for
  // it need not be expected to the next time.
  void miss() {
    if (begun_at_.load() > left_at_.load()) at_once_.store(false);
  }

  // How long the thread rests before it looks again, where callers have left it nothing to do for
  // `idle`. Each look takes a processor from a rank; where callers wait at once nothing is late.
  Nanos rest(Nanos idle) const {
    return at_once_.load() ? std::clamp(idle, kGrace, kLongestRest) : kGrace;
  }

 private:
  static constexpr Nanos kGrace = kMillisecond;
  static constexpr Nanos kLongestRest = 8 * kMillisecond;
  static constexpr Nanos kAtOnce = 100 * kMicrosecond;

  std::atomic<int> waiting_{0};
  std::atomic<Nanos> left_at_{0};   // by the last caller that waited
  std::atomic<Nanos> begun_at_{0};  // when something was begun last
  std::atomic<bool> at_once_{false};
};

}  // namespace catchment::host
