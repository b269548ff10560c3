// When to resend: round-trip estimate, backoff, and a jitter of each worker's own, so that workers
// do not resend at the same instant (LuWu 3.2.3).  Pure: times are nanoseconds that the caller
// passes.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "serial.hpp"

namespace catchment::host {

using Nanos = std::int64_t;
inline constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

struct RetransmitLimits {
  Nanos first = 5'000'000;  // before the first round trip was measured
  Nanos least = 1'000'000;
  Nanos most = 10'000'000;
};

class RetransmitTimer {
 public:
  RetransmitTimer(RetransmitLimits limits, std::uint32_t jitter_seed);

  // A frame was sent for the first time.
  void on_sent(Seq seq, Nanos now);
  // ma moved to `acked`; `outstanding`: something is still in flight.
  void on_progress(Seq acked, bool outstanding, Nanos now);
  // The timer ran out and frames are resent: back off.
  void on_expired(Nanos now);

  bool expired(Nanos now) const { return now >= deadline_; }
  Nanos deadline() const { return deadline_; }
  Nanos timeout() const { return timeout_; }
  // Smoothed round trip, 0 before the first.
  Nanos round_trip() const { return smoothed_; }

 private:
  Nanos base() const;
  Nanos jitter();

  RetransmitLimits limits_;
  std::uint32_t random_;
  Nanos timeout_;
  Nanos deadline_ = kNever;
  Nanos smoothed_ = 0;
  Nanos variation_ = 0;
  std::optional<Seq> timed_;  // the frame whose round trip is being measured
  Nanos timed_at_ = 0;
};

}  // namespace catchment::host
