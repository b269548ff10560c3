// A line that carries frames: what arrives is handed on with its contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/world/native/line.hpp"

namespace catchment::world {

/// Frame: cheap to copy (bytes behind a shared pointer, an object of Python).
template <typename Frame>
class FrameLine : public Line {
 public:
  using Line::Line;

  /// Sends as Line::send() does; deliver(frame, copy) hears of each copy that arrives, at once and
  /// not at its time.
  template <typename Deliver>
  Transit carry(const Frame& frame, std::size_t bytes, std::uint8_t kind, Picos ready,
                Picos complete, Deliver&& deliver) {
    const Transit transit = send(bytes, kind, ready, complete);
    for (std::size_t i = 0; i < transit.copies; ++i) deliver(frame, transit.copy[i]);
    if (faults().replay <= 0 || transit.dropped) return transit;
    if (transit.replays && !earlier_.empty()) {
      deliver(earlier_[scaled(transit.which, earlier_.size() - 1)], transit.replay);
      ++replayed_;
    }
    if (earlier_.size() < kRemembered) {
      earlier_.push_back(frame);
    } else {
      earlier_[oldest_++ % kRemembered] = frame;
    }
    return transit;
  }

  [[nodiscard]] std::uint64_t replayed() const { return replayed_; }

 private:
  static constexpr std::size_t kRemembered = 512;

  std::vector<Frame> earlier_;
  std::size_t oldest_ = 0;
  std::uint64_t replayed_ = 0;
};

}  // namespace catchment::world
