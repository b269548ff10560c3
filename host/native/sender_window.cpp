#include "sender_window.hpp"

#include <algorithm>

namespace catchment::host {

SenderWindow::SenderWindow(Seq base, std::uint32_t window)
    : window_(window),
      ma_(base),
      next_(base),
      end_(base),
      credit_(base + window),
      resend_(base),
      resend_end_(base),
      hinted_(base),
      recover_(base) {}

std::optional<Transmission> SenderWindow::take() {
  if (resend_ != resend_end_) return Transmission{resend_++, true};
  if (next_ == end_ || !newer(credit_, next_)) return std::nullopt;
  return Transmission{next_++, false};
}

AckOutcome SenderWindow::on_ack(Seq ack, Seq credit) {
  if (newer(ack, next_) || distance(ack, credit) > window_) return AckOutcome::kImpossible;
  const bool more_credit = newer(credit, credit_);
  if (more_credit) credit_ = credit;
  if (!newer(ack, ma_)) return more_credit ? AckOutcome::kCreditOnly : AckOutcome::kNothing;
  // Acknowledged beyond what was resent: the frames were late, not lost, and need no repetition.
  const bool late = newer(ack, resend_end_);
  ma_ = ack;
  hinted_ = later(hinted_, ma_);
  resend_ = later(resend_, ma_);
  resend_end_ = later(resend_end_, resend_);
  if (burst_ != 0) {
    burst_ = late || !newer(recover_, ma_) ? 0 : std::min(2 * burst_, window_);
    schedule(resend_end_, earlier(ma_ + burst_, recover_));
  }
  return AckOutcome::kAdvanced;
}

void SenderWindow::on_timeout() {
  if (!outstanding()) return;
  recover_ = next_;
  burst_ = 1;
  hinted_ = ma_;
  resend_ = ma_;
  resend_end_ = ma_ + 1;
}

void SenderWindow::on_hole(Seq ack, Seq end) {
  // `ack` may be the merged minimum and so belong to another receiver than the hole.
  const Seq from = later(hinted_, later(ack, ma_));
  const Seq to = earlier(end, next_);
  if (!newer(to, from)) return;
  hinted_ = to;
  schedule(from, to);
}

void SenderWindow::schedule(Seq from, Seq to) {
  if (!newer(to, from)) return;
  if (resend_ == resend_end_) {
    resend_ = from;
    resend_end_ = to;
  } else {
    resend_ = earlier(resend_, from);
    resend_end_ = later(resend_end_, to);
  }
}

}  // namespace catchment::host
