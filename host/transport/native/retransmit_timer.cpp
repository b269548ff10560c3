#include "retransmit_timer.hpp"

#include <algorithm>
#include <cstdlib>

namespace catchment::host {
namespace {

// A switch, or a window on a slow link, may take so many times longer than expected and is still
// sent every frame once.
constexpr Nanos kSlowSwitch = 100;

}  // namespace

RetransmitTimer::RetransmitTimer(RetransmitLimits limits, std::uint32_t jitter_seed)
    : limits_(limits), random_(jitter_seed * 2'654'435'761U + 1U), timeout_(limits.first) {}

void RetransmitTimer::on_sent(Seq seq, Nanos now) {
  next_ = seq + 1;
  if (!timed_ && !repeats_) {
    timed_ = seq;
    timed_at_ = now;
  }
  if (!bounded_) {
    bounded_ = seq;
    bounded_at_ = now;
  }
  if (deadline_ == kNever) deadline_ = now + timeout_ + jitter();
}

void RetransmitTimer::on_progress(Seq acked, bool outstanding, Nanos now) {
  if (bounded_ && newer(acked, *bounded_)) {
    bound_ = now - bounded_at_;
    bounded_.reset();
  }
  if (timed_ && newer(acked, *timed_)) {
    const Nanos sample = now - timed_at_;
    sample_ = sample;
    if (smoothed_ == 0) {
      smoothed_ = sample;
      variation_ = sample / 2;
    } else {
      variation_ += (std::abs(sample - smoothed_) - variation_) / 4;
      smoothed_ += (sample - smoothed_) / 8;
    }
    timed_.reset();
    held_ = 0;
  } else if (repeating_) {
    held_ = timeout_;
  }
  repeating_ = false;
  if (repeats_ && !newer(*repeats_, acked)) repeats_.reset();
  timeout_ = start();
  deadline_ = outstanding ? now + timeout_ + jitter() : kNever;
}

void RetransmitTimer::on_expired(Nanos now) {
  timed_.reset();  // its acknowledgement could belong to either transmission
  repeats_ = next_;
  repeating_ = true;
  timeout_ = std::min(2 * timeout_, std::clamp(2 * start(), limits_.most, slowest()));
  deadline_ = now + timeout_ + jitter();
}

Nanos RetransmitTimer::base() const {
  if (smoothed_ == 0) return limits_.first;
  return std::clamp(smoothed_ + 4 * variation_, limits_.least, slowest());
}

Nanos RetransmitTimer::start() const { return std::max(base(), held_); }

Nanos RetransmitTimer::slowest() const { return kSlowSwitch * limits_.most; }

Nanos RetransmitTimer::jitter() {
  random_ = random_ * 1'664'525U + 1'013'904'223U;
  return timeout_ / 4 * (random_ >> 16) / 65'536;
}

}  // namespace catchment::host
