#include "consumer_window.hpp"

#include <bit>

namespace catchment::host {

ConsumerWindow::ConsumerWindow(Seq base, std::uint32_t depth)
    : depth_(depth),
      mask_(std::bit_ceil(depth) - 1),
      ack_(base),
      consumed_(base),
      held_(mask_ + 1U, false) {}

Arrival ConsumerWindow::classify(Seq seq) const {
  if (newer(ack_, seq)) return Arrival::kDuplicate;
  if (distance(ack_, seq) >= distance(ack_, credit())) return Arrival::kOutside;
  if (seq == ack_) return Arrival::kNext;
  return held_[place(seq)] ? Arrival::kDuplicate : Arrival::kAhead;
}

void ConsumerWindow::hold(Seq seq) {
  if (seq != ack_) {
    held_[place(seq)] = true;
    ++ahead_;
    return;
  }
  advance();
}

void ConsumerWindow::pass() {
  ++consumed_;
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

std::optional<Seq> ConsumerWindow::hole_end() const {
  if (ahead_ == 0) return std::nullopt;
  Seq seq = ack_ + 1;
  while (!held_[place(seq)]) ++seq;
  return seq;
}

}  // namespace catchment::host
