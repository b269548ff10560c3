#include "consumer_window.hpp"

#include <bit>

namespace catchment::host {

ConsumerWindow::ConsumerWindow(Seq base, std::uint32_t depth)
    : depth_(depth),
      mask_(std::bit_ceil(depth) - 1),
      ack_(base),
      consumed_(base),
      highest_(base),
      held_(mask_ + 1U, false) {}

Arrival ConsumerWindow::classify(Seq seq) const {
  if (newer(ack_, seq)) return Arrival::kDuplicate;
  if (distance(ack_, seq) >= distance(ack_, credit())) return Arrival::kOutside;
  if (seq == ack_) return Arrival::kNext;
  return held_[place(seq)] ? Arrival::kDuplicate : Arrival::kAhead;
}

std::pair<Seq, Seq> ConsumerWindow::hold(Seq seq) {
  const std::pair<Seq, Seq> skipped{highest_, later(seq, highest_)};
  highest_ = later(highest_, seq + 1);
  if (seq == ack_) {
    advance();
  } else {
    held_[place(seq)] = true;
    ++ahead_;
  }
  return skipped;
}

void ConsumerWindow::pass() {
  ++consumed_;
  highest_ = later(highest_, ack_ + 1);
  advance();
}

void ConsumerWindow::advance() {
  ++ack_;
  while (ahead_ != 0 && held_[place(ack_)]) {
    held_[place(ack_)] = false;
    --ahead_;
    ++ack_;
  }
}

}  // namespace catchment::host
