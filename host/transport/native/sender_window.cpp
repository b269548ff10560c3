#include "sender_window.hpp"

#include <algorithm>
#include <bit>

namespace catchment::host {

SenderWindow::SenderWindow(Seq base, std::uint32_t window, std::uint32_t slots)
    : window_(window),
      slots_(slots),
      ma_(base),
      next_(base),
      end_(base),
      credit_(base + window),
      marks_(std::bit_ceil(window), kNone),
      scan_(base),
      recover_(base),
      resent_(base) {}

AckOutcome SenderWindow::on_ack(Seq ack, Seq credit) {
  if (newer(ack, next_) || distance(ack, credit) > slots_) return AckOutcome::kImpossible;
  const bool more_credit = newer(credit, credit_);
  if (more_credit) credit_ = credit;
  if (!newer(ack, ma_)) return more_credit ? AckOutcome::kCreditOnly : AckOutcome::kNothing;
  for (; ma_ != ack; ++ma_) {
    scheduled_ -= (mark(ma_) & kResend) != 0 ? 1 : 0;
    mark(ma_) = kNone;
  }
  scan_ = later(scan_, ma_);
  if (burst_ == 0) return AckOutcome::kAdvanced;
  // Acknowledged beyond what was resent: the frames were late, not lost, and need no repetition.
  const bool late = newer(ma_, resent_);
  burst_ = late || !newer(recover_, ma_) ? 0 : std::min(2 * burst_, window_);
  if (burst_ == 0) return AckOutcome::kAdvanced;
  for (const Seq to = earlier(ma_ + burst_, recover_); newer(to, resent_); ++resent_) {
    schedule(resent_);
  }
  return AckOutcome::kAdvanced;
}

void SenderWindow::on_timeout() {
  if (!outstanding()) return;
  std::fill(marks_.begin(), marks_.end(), std::uint8_t{kNone});
  scheduled_ = 0;
  schedule(ma_);
  burst_ = 1;
  recover_ = next_;
  resent_ = ma_ + 1;
}

void SenderWindow::on_missing(Seq seq) {
  if (distance(ma_, seq) >= distance(ma_, next_) || (mark(seq) & kAsked) != 0) return;
  mark(seq) |= kAsked;
  schedule(seq);
}

void SenderWindow::schedule(Seq seq) {
  if ((mark(seq) & kResend) != 0) return;
  mark(seq) |= kResend;
  scan_ = scheduled_ == 0 ? seq : earlier(scan_, seq);
  ++scheduled_;
}

}  // namespace catchment::host
