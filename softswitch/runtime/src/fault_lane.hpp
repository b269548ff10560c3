// Faults of the frames of one port in one direction.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "catchment/common/faults.hpp"
#include "catchment/softswitch/faults.hpp"

namespace catchment::softswitch {

class FaultLane {
 public:
  using Clock = std::chrono::steady_clock;
  using Bytes = std::span<const std::uint8_t>;

  /// Frames that are held stay held. What happens to a frame depends on the seed, the line and how
  /// many frames came before it.
  void set(const FaultRates& rates, std::uint64_t seed, std::uint64_t line);
  /// Whether frames may pass it by.
  [[nodiscard]] bool idle() const { return rates_.none() && held_.empty() && overtaken_.empty(); }
  [[nodiscard]] const FaultCounters& counters() const { return counters_; }
  /// The time at which release() is to be called; time_point::max() if no frame is held.
  [[nodiscard]] Clock::time_point due() const;

  /// Frames handed out before are forgotten; then appends those whose time has come, `most` at
  /// most.
  void release(Clock::time_point now, std::size_t most, std::vector<Bytes>& out);
  /// Decides on the next frame. Appends what passes now: the frame's own bytes, or copies that last
  /// until the next release().
  void admit(Bytes frame, Clock::time_point now, std::vector<Bytes>& out);

 private:
  struct Held {
    Clock::time_point due;
    std::uint64_t order = 0;  // among those due at once; if overtaken: how many pass before it
    std::vector<std::uint8_t> bytes;
  };
  static bool later(const Held& a, const Held& b) {
    return a.due != b.due ? a.due > b.due : a.order > b.order;
  }

  [[nodiscard]] bool has_room() const;
  std::vector<std::uint8_t> copy_of(Bytes frame);
  void hold(Bytes frame, Clock::time_point due);
  [[nodiscard]] Clock::duration delay_of(const CopyFate& copy) const;
  /// The time at which the link has passed the frame on; nothing if its queue has no room.
  [[nodiscard]] std::optional<Clock::time_point> through_link(std::size_t bytes,
                                                              Clock::time_point now);
  void lend(std::vector<std::uint8_t>&& bytes, std::vector<Bytes>& out);
  void pass(Bytes frame, std::vector<Bytes>& out);

  FaultRates rates_;
  FaultCounters counters_;
  catchment::FaultRates chances_;
  FaultStream stream_{0, 0};
  Clock::time_point link_free_;   // has passed on every frame before then
  double link_remainder_ns_ = 0;  // beyond link_free_, less than a nanosecond
  std::uint64_t passed_ = 0;
  std::uint64_t order_ = 0;
  std::vector<Held> held_;       // a heap, the next one due in front
  std::vector<Held> overtaken_;  // few
  std::vector<std::vector<std::uint8_t>> lent_;
  std::vector<std::vector<std::uint8_t>> free_;
};

}  // namespace catchment::softswitch
