// What a line does to the frames on it: the one model of faults (docs/explanation/world.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "catchment/common/philox.hpp"

namespace catchment {

/// Losses in bursts (Gilbert): a line is good or bad, and changes from frame to frame.
struct Burst {
  double enter = 0;  // probability that a good line becomes bad, per frame
  double leave = 1;  // and a bad one good
  double loss = 1;   // of a frame on a bad line
};

/// Probabilities per frame, 0 to 1.
struct FaultRates {
  double loss = 0;
  double damage = 0;     // the frame arrives with a wrong FCS
  double duplicate = 0;  // it arrives twice
  double reorder = 0;    // a copy is held back, and others pass it
  double replay = 0;     // an earlier frame of the line arrives once more, beside this one
  Burst burst;

  /// Whether a frame may be lost, damaged or doubled.
  [[nodiscard]] bool changes_frames() const {
    return loss > 0 || damage > 0 || duplicate > 0 || burst.enter > 0;
  }
  /// Whether nothing ever happens to a frame.
  [[nodiscard]] bool none() const { return !changes_frames() && reorder <= 0 && replay <= 0; }
};

/// What happens to a copy of a frame; `hold` and `jitter` are uniform over 64 bits, for the owner
/// of the line to scale.
struct CopyFate {
  bool reordered = false;
  std::uint64_t hold = 0;
  std::uint64_t jitter = 0;
};

/// What happens to a frame.
struct Fate {
  bool lost = false;
  bool damaged = false;
  std::size_t copies = 0;  // that arrive: 0 if it is lost
  std::array<CopyFate, 2> copy;
  bool replays = false;
  std::uint64_t which = 0;  // of the earlier frames: uniform over 64 bits
};

/// Frames that are lost by order, not by chance.
class TargetedLosses {
 public:
  /// Loses `count` frames of this kind (any, if none is given) after `skip` others of it.
  void add(std::optional<std::uint8_t> kind, std::uint64_t skip, std::uint64_t count) {
    if (count != 0) orders_.push_back({kind, skip, count});
  }

  [[nodiscard]] bool none() const { return orders_.empty(); }

  /// Whether the next frame is one of them. Of two orders that it matches the older one counts it.
  bool hit(std::uint8_t kind) {
    const auto order = std::find_if(orders_.begin(), orders_.end(), [&](const Order& one) {
      return !one.kind || *one.kind == kind;
    });
    if (order == orders_.end()) return false;
    if (order->skip != 0) {
      --order->skip;
      return false;
    }
    if (--order->count == 0) orders_.erase(order);
    return true;
  }

 private:
  struct Order {
    std::optional<std::uint8_t> kind;
    std::uint64_t skip;
    std::uint64_t count;
  };

  std::vector<Order> orders_;
};

/// The fates of a line's frames, one after the other. What is drawn for a frame depends on the
/// seed, the line and the frame's number on that line alone; each kind of fault has draws of its
/// own, so that one fault does not move another.
class FaultStream {
 public:
  FaultStream(std::uint64_t seed, std::uint64_t line) : random_(seed, line) {}

  TargetedLosses targeted;

  /// Draws the fate of the next frame; targeted losses compare its `kind`. Without `times` the
  /// caller does not need the copies' jitter. What is not needed is not drawn, which changes
  /// nothing else.
  Fate next(const FaultRates& rates, std::uint8_t kind = 0, bool times = true) {
    const std::uint64_t number = frames_++;
    Fate fate;
    fate.copies = 1;
    const bool chosen = targeted.hit(kind);
    if (bad_ || rates.changes_frames()) {
      const auto [loss, burst, damage, duplicate] = random_.at(number, kFrame);
      bad_ = fraction(burst) < (bad_ ? 1 - rates.burst.leave : rates.burst.enter);
      const double lossy = bad_ ? std::max(rates.loss, rates.burst.loss) : rates.loss;
      fate.lost = fraction(loss) < lossy;
      fate.damaged = fraction(damage) < rates.damage;
      if (fraction(duplicate) < rates.duplicate) fate.copies = 2;
    }
    if (chosen || fate.lost) {
      fate.lost = true;
      fate.damaged = false;
      fate.copies = 0;
    }
    for (std::size_t i = 0; i < fate.copies && (times || rates.reorder > 0); ++i) {
      const auto [reorder, hold, jitter, unused] = random_.at(number, kCopy + i);
      fate.copy[i] = {fraction(reorder) < rates.reorder, hold, jitter};
    }
    if (rates.replay > 0) {
      const auto [replay, which, unused, unused_too] = random_.at(number, kReplay);
      fate.replays = fraction(replay) < rates.replay;
      fate.which = which;
    }
    return fate;
  }

  [[nodiscard]] std::uint64_t frames() const { return frames_; }

  /// Whether frames pass at `rates` as if there were no faults.
  [[nodiscard]] bool clear(const FaultRates& rates) const {
    return !bad_ && rates.none() && targeted.none();
  }
  /// So many frames passed unseen; only while the line is clear.
  void pass(std::uint64_t frames) { frames_ += frames; }

 private:
  // Parts of what is drawn for a frame.
  static constexpr std::uint64_t kFrame = 0;
  static constexpr std::uint64_t kReplay = 1;
  static constexpr std::uint64_t kCopy = 2;

  Philox random_;
  std::uint64_t frames_ = 0;
  bool bad_ = false;
};

}  // namespace catchment
