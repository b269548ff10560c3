// Says when a rank asks for missing sums although no later sum has shown that they are missing: the
// last vectors of a window, or of all, have no later ones.  Pure: times are nanoseconds that the
// caller passes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "retransmit_timer.hpp"

namespace catchment::host {

class SilenceTimer {
 public:
  // A sum came.
  void on_sum(Nanos now) { start(now); }
  // A later sum has shown that frames were lost.
  void on_loss(Nanos now) { lossy_until_ = now + kMemory; }
  // A vector came back after so long. The shortest of the last ones counts, since others have
  // waited for a rank that was late.
  void on_round_trip(Nanos sample) {
    recent_[samples_++ % recent_.size()] = sample;
    const auto known = static_cast<std::ptrdiff_t>(std::min(samples_, recent_.size()));
    round_trip_ = *std::min_element(recent_.begin(), recent_.begin() + known);
    if (!std::exchange(repeated_, false)) late_ = std::max(late_ - 1, 0);
  }
  // A sum came twice: what was asked for, here or by a neighbour, had been under way.
  void on_duplicate() {
    late_ = std::min(late_ + 1, kLatest);
    repeated_ = true;
  }
  // The shortest of the last ones, 0 before the first.
  Nanos round_trip() const { return round_trip_; }
  // A rank that waits tells the others so after `least`, or two round trips: what crosses a slow
  // link is no silence, and its calls, which all answer, would fill the link.  A round trip that
  // others have stretched counts for so much only.
  Nanos call_after(Nanos least) const {
    return std::max(least, std::min(2 * round_trip_, kLongestCall));
  }
  // The silence was broken by asking: the next time later.
  void on_asked(Nanos now) {
    const Nanos longest = samples_ == 0 ? kLongestFirst : kLastRoundTrips * patient();
    after_ = std::min({2 * after_, std::max(kLast, longest), kLongestFirst});
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

  // On a slow link, or one that others use as well, sums are apart, and what is sent again delays
  // them further: what a round trip has not answered yet may still be under way.
  // Before any round trip is known it may be longer than the silence: then a sum does not shorten
  // the silence again, else all ranks ask for what is under way, and it never comes. In a tree of
  // switches every answer goes to all below a leaf.
  static constexpr Nanos kLongestFirst = 500'000'000;
  static constexpr Nanos kLongestCall = 500'000'000;
  static constexpr Nanos kShareIfLossy = 8;
  static constexpr Nanos kLastRoundTrips = 4;
  static constexpr int kLatest = 6;

  // A round trip, doubled for each duplicate lately.
  Nanos patient() const { return round_trip_ << late_; }
  void start(Nanos now) {
    const bool lossy = now < lossy_until_;
    if (samples_ != 0) {
      after_ = std::clamp(lossy ? round_trip_ / kShareIfLossy : patient(),
                          lossy ? kFirstIfLossy : kFirst, kLongestFirst);
    }
    at_ = now + after_;
  }

  Nanos at_ = kNever;
  Nanos after_ = kFirst;
  Nanos lossy_until_ = 0;
  std::array<Nanos, 8> recent_{};
  std::size_t samples_ = 0;
  int late_ = 0;
  bool repeated_ = false;  // a sum came twice since the last sample
  Nanos round_trip_ = 0;
};

}  // namespace catchment::host
