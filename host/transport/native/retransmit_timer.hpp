// Says when a sender resends: round-trip estimate, backoff, and a jitter of each worker's own, so
// that workers do not resend at the same instant (LuWu 3.2.3).  Pure: times are nanoseconds that
// the caller passes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "catchment/common/clock.hpp"
#include "catchment/common/serial.hpp"

namespace catchment::host {

struct RetransmitLimits {
  Nanos first = 5'000'000;  // before the first round trip was measured
  Nanos least = 1'000'000;
  Nanos most = 10'000'000;  // for a switch whose answers come before it
};

class RetransmitTimer {
 public:
  RetransmitTimer(RetransmitLimits limits, std::uint32_t jitter_seed);

  // A frame was sent for the first time: `seq` follows all that were sent before.
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
  // What was measured since the last call, once.
  std::optional<Nanos> take_sample() { return std::exchange(sample_, std::nullopt); }
  // How long a round trip takes at most, once: since a frame that has been answered was first sent,
  // even if it was repeated meanwhile.
  std::optional<Nanos> take_bound() { return std::exchange(bound_, std::nullopt); }

 private:
  Nanos base() const;
  Nanos start() const;
  Nanos slowest() const;
  Nanos jitter();

  RetransmitLimits limits_;
  std::uint32_t random_;
  Nanos timeout_;
  bool repeating_ = false;  // it ran out since anything moved
  // What the timeout had grown to when a repeated frame was answered, until a frame that was sent
  // once is answered.  The sender cannot know which transmission such an answer is to, so it is no
  // sample; but if the sender did not wait longer, a switch slower than the longest timeout would
  // get every frame several times, become slower still, and never be measured (Karn and Partridge).
  Nanos held_ = 0;
  Nanos deadline_ = kNever;
  std::optional<Nanos> sample_;
  std::optional<Nanos> bound_;
  Nanos smoothed_ = 0;
  Nanos variation_ = 0;
  Seq next_ = 0;              // after the newest frame sent
  std::optional<Seq> timed_;  // the frame whose round trip is being measured
  Nanos timed_at_ = 0;
  std::optional<Seq> bounded_;  // the frame whose answer is the next bound
  Nanos bounded_at_ = 0;
  std::optional<Seq> repeats_;  // until ma is here, repetitions hold answers up: nothing is timed
};

}  // namespace catchment::host
