// How late the threads of this rank are run, as one of them sees that wakes by the clock.
//
// Pure: times are nanoseconds that the caller passes.
#pragma once

#include <algorithm>
#include <utility>

#include "catchment/common/clock.hpp"

namespace catchment::host::rails {

class OwnLateness {
 public:
  // The thread was run at `now`, so much `late`r than it was to be woken.
  void on_woken(Nanos now, Nanos late) {
    if (now - began_ >= kMemory) {
      before_ = now - began_ >= 2 * kMemory ? 0 : std::exchange(worst_, 0);
      worst_ = 0;
      began_ = now;
    }
    worst_ = std::max(worst_, late);
  }
  // The most of the last second at least, of two at most.
  Nanos worst() const { return std::max(worst_, before_); }

 private:
  static constexpr Nanos kMemory = kSecond;

  Nanos began_ = 0;
  Nanos worst_ = 0;
  Nanos before_ = 0;  // of the second before this one
};

}  // namespace catchment::host::rails
