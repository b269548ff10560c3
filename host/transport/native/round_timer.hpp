// How long a round may take before it is asked for again.  Pure: times are nanoseconds that the
// caller passes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "retransmit_timer.hpp"

namespace catchment::host {

// Each round has a deadline of its own; the estimate of the round trip is shared by all.
class RoundTimer {
 public:
  RoundTimer(RetransmitLimits limits, std::uint32_t jitter_seed)
      : limits_(limits), random_(jitter_seed * 2'654'435'761U + 1U) {}

  // An answer to a frame that was sent once arrived after `sample`.
  void on_answer(Nanos sample) {
    backoff_ = 0;
    sample_ = sample;
    if (smoothed_ == 0) {
      smoothed_ = std::max<Nanos>(sample, 1);
      variation_ = sample / 2;
      return;
    }
    variation_ += (std::abs(sample - smoothed_) - variation_) / 4;
    smoothed_ += (sample - smoothed_) / 8;
  }

  // An answer to a frame that was sent again arrived: the worker cannot know which of the frames it
  // answers, so it is no sample.  The next rounds wait longer, or a switch slower than the estimate
  // would get every frame twice, become slower still, and never be measured (Karn and Partridge).
  void on_late_answer() { backoff_ = std::min(backoff_ + 1, kMostBackoff); }

  // The time at which the worker asks again after `attempts` frames went unanswered.
  Nanos deadline(std::uint32_t attempts, Nanos now) {
    const Nanos most = limits_.most << std::min(attempts / kOften, kMostPatience);
    const Nanos wait = std::min(base() << std::min(attempts + backoff_, kMostShift), most);
    random_ = random_ * 1'664'525U + 1'013'904'223U;
    return now + wait + wait / 4 * (random_ >> 16) / 65'536;
  }

  Nanos round_trip() const { return smoothed_; }
  // What was measured since the last call, once.
  std::optional<Nanos> take_sample() { return std::exchange(sample_, std::nullopt); }
  Nanos base() const {
    if (smoothed_ == 0) return limits_.first;
    return std::clamp(smoothed_ + 4 * variation_, limits_.least, limits_.most);
  }

 private:
  static constexpr std::uint32_t kMostBackoff = 6;
  static constexpr std::uint32_t kMostShift = 12;
  // A worker that asked so often in vain waits up to eight times the limit: many workers that
  // repeat at the limit can alone be more than a slow switch takes.
  static constexpr std::uint32_t kOften = 8;
  static constexpr std::uint32_t kMostPatience = 3;

  RetransmitLimits limits_;
  std::uint32_t random_;
  std::uint32_t backoff_ = 0;
  std::optional<Nanos> sample_;
  Nanos smoothed_ = 0;
  Nanos variation_ = 0;
};

}  // namespace catchment::host
