#include "heartbeat.hpp"

#include <algorithm>

namespace catchment::host {
namespace {

// Shares of a round trip that a change and the next period wait at least.
constexpr Nanos kChange = 4;
constexpr Nanos kPeriod = 2;
// The round trip of a rank that called late is no measure of its link, and holds credit back no
// longer.
constexpr Nanos kLongestDelay = 150'000'000;

}  // namespace

Heartbeat::Heartbeat(Seq base, std::uint32_t depth, HeartbeatTimes times)
    : quarter_(std::max<std::uint32_t>(1, depth / 4)),
      times_(times),
      delay_(times.delay),
      shortest_(times.shortest),
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

void Heartbeat::on_round_trip(Nanos round_trip) {
  delay_ = std::max(times_.delay, std::min(round_trip / kChange, kLongestDelay));
  shortest_ = std::max(times_.shortest, std::min(round_trip / kPeriod, 2 * kLongestDelay));
}

Nanos Heartbeat::deadline() const {
  if (urgent_ || (flush_ && changed_)) return 0;
  Nanos soonest = periodic_at_;
  if (changed_) soonest = std::min(soonest, changed_at_ + delay_);
  if (missed_) soonest = std::min(soonest, sent_at_ + delay_);
  return soonest;
}

void Heartbeat::on_sent(Seq ack, Seq credit, Nanos now) {
  const bool moved = ack != sent_ack_ || credit != sent_credit_;
  period_ = moved ? shortest_ : std::max(shortest_, std::min(2 * period_, times_.longest));
  sent_at_ = now;
  periodic_at_ = now + period_;
  missed_ = false;
  said(ack, credit);
}

void Heartbeat::on_carried(Seq ack, Seq credit) {
  if (ack != sent_ack_ || credit != sent_credit_) period_ = shortest_;
  said(ack, credit);
}

void Heartbeat::said(Seq ack, Seq credit) {
  sent_ack_ = ack;
  sent_credit_ = credit;
  changed_ = flush_ = urgent_ = false;
}

}  // namespace catchment::host
