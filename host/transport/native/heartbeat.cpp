#include "heartbeat.hpp"

#include <algorithm>

namespace catchment::host {

Heartbeat::Heartbeat(Seq base, std::uint32_t depth, HeartbeatTimes times)
    : quarter_(std::max<std::uint32_t>(1, depth / 4)),
      times_(times),
      sent_ack_(base),
      sent_credit_(base + depth),
      period_(times.shortest) {}

void Heartbeat::on_window(Seq ack, Seq credit, Nanos now) {
  const std::uint32_t moved = std::max(distance(sent_ack_, ack), distance(sent_credit_, credit));
  if (moved == 0) return;
  if (!changed_) {
    changed_ = true;
    changed_at_ = now;
  }
  if (moved >= quarter_) urgent_ = true;
}

Nanos Heartbeat::deadline() const {
  if (urgent_ || (flush_ && changed_)) return 0;
  return changed_ ? std::min(changed_at_ + times_.delay, periodic_at_) : periodic_at_;
}

void Heartbeat::on_sent(Seq ack, Seq credit, Nanos now) {
  const bool moved = ack != sent_ack_ || credit != sent_credit_;
  period_ = moved ? times_.shortest : std::min(2 * period_, times_.longest);
  periodic_at_ = now + period_;
  said(ack, credit);
}

void Heartbeat::on_carried(Seq ack, Seq credit) {
  if (ack != sent_ack_ || credit != sent_credit_) period_ = times_.shortest;
  said(ack, credit);
}

void Heartbeat::said(Seq ack, Seq credit) {
  sent_ack_ = ack;
  sent_credit_ = credit;
  changed_ = flush_ = urgent_ = false;
}

}  // namespace catchment::host
