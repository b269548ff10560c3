// The receiver's side of the protocol: which frame to take, what to acknowledge.  Pure.
//
//   consumed ......... ack ......... consumed + depth = credit
//   handed over        received and   frames ahead of ack are kept where they fall
//   below              not yet taken
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "catchment/common/serial.hpp"

namespace catchment::host {

enum class Arrival : std::uint8_t {
  kNext,       // exactly the one expected
  kAhead,      // inside the window, something before it is missing
  kDuplicate,  // already here or already handed over
  kOutside,    // beyond the credit
};

class ConsumerWindow {
 public:
  // depth: D, frames that may be held; the credit is what bounds memory.
  ConsumerWindow(Seq base, std::uint32_t depth);

  Arrival classify(Seq seq) const;

  // Takes a kNext or kAhead frame into its place; ack moves over everything that is now complete.
  // Returns [first, last) of the frames that this one has shown to be missing.
  std::pair<Seq, Seq> hold(Seq seq);

  // A kNext frame that is handed over at once; only when nothing is ready.
  void pass();

  // The oldest received frame that is not handed over yet.
  bool ready() const { return consumed_ != ack_; }
  // Hands over that frame.
  void consume() { ++consumed_; }

  // Whether `seq` is neither received nor beyond the credit.
  bool missing(Seq seq) const {
    const Arrival arrival = classify(seq);
    return arrival == Arrival::kNext || arrival == Arrival::kAhead;
  }

  Seq ack() const { return ack_; }
  Seq consumed() const { return consumed_; }
  Seq credit() const { return consumed_ + depth_; }
  std::uint32_t depth() const { return depth_; }
  // The place of a frame's payload in a ring of `places()` entries.
  std::uint32_t place(Seq seq) const { return seq & mask_; }
  std::uint32_t places() const { return mask_ + 1; }

 private:
  void advance();

  std::uint32_t depth_;
  std::uint32_t mask_;
  Seq ack_;
  Seq consumed_;
  Seq highest_;              // one past the last frame received
  std::uint32_t ahead_ = 0;  // frames held beyond ack
  std::vector<bool> held_;   // by place, for frames from ack on
};

}  // namespace catchment::host
