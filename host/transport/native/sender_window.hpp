// The sender's side of the protocol: which frame may or must be sent next.  Pure: no clock, no
// socket; the endpoint tells it what arrived and when a timer ran out.
//
//   ma ..................................... next ............ end
//   everyone has    [ma, next) is in flight,   [next, end) is queued and sent while
//   all below ma    kept until acknowledged    newer(credit, next) and the window has room
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "catchment/common/serial.hpp"

namespace catchment::host {

enum class AckOutcome : std::uint8_t {
  kAdvanced,    // ma moved
  kCreditOnly,  // only the credit moved
  kNothing,     // known already, or older than what is known
  kImpossible,  // acknowledges what was never sent, or more credit than a window
};

struct Transmission {
  Seq seq;
  bool again;  // a retransmission
};

class SenderWindow {
 public:
  // window: frames that may be in flight, and the first credit; slots: the largest window of any
  // member, which bounds what a credit may say.
  SenderWindow(Seq base, std::uint32_t window, std::uint32_t slots);

  // Appends frames to what is to be sent.
  void queue(std::uint32_t frames) { end_ += frames; }

  // New frames from `seq` on are held back, until another is named; none: nothing is.
  void hold_back(std::optional<Seq> seq) { held_ = seq; }

  // The next frame to send now, retransmissions first; nothing when all is sent or held back, or no
  // credit is left.
  std::optional<Transmission> take();

  AckOutcome on_ack(Seq ack, Seq credit);

  // No progress for the retransmission timeout: resend ma, and while acks return for what was
  // resent and no more, twice as many each time up to what was in flight now.
  void on_timeout();

  // A receiver lacks `seq` although it holds a later frame: resend that one, once per timeout.
  void on_missing(Seq seq);

  // What was in flight when the timer ran out still comes back unrepeated: it was late, not lost.
  // Acks that return one by one do not tell these apart; who sees the frames themselves does.
  void on_late() { burst_ = 0; }

  // It is known that `seq` was lost, however often it was sent.
  void resend(Seq seq) {
    if (distance(ma_, seq) < distance(ma_, next_)) schedule(seq);
  }

  Seq acked() const { return ma_; }
  Seq next() const { return next_; }
  Seq end() const { return end_; }
  Seq credit() const { return credit_; }
  bool outstanding() const { return ma_ != next_; }
  bool idle() const { return ma_ == end_; }
  // The next new frame may be sent.
  bool open() const { return newer(credit_, next_) && distance(ma_, next_) < window_; }
  // Something is queued, and credit or room in the window is missing.
  bool starved() const { return next_ != end_ && !open(); }
  // Everything sent has arrived, and the receivers have no room for more.
  bool no_credit() const { return !outstanding() && !newer(credit_, next_); }

 private:
  // What is to be done for a frame in flight.
  enum Mark : std::uint8_t { kNone = 0, kResend = 1, kAsked = 2 };

  std::uint8_t& mark(Seq seq) { return marks_[seq & (marks_.size() - 1)]; }
  void schedule(Seq seq);

  std::uint32_t window_;
  std::uint32_t slots_;
  Seq ma_;
  Seq next_;
  Seq end_;
  Seq credit_;
  std::optional<Seq> held_;
  std::vector<std::uint8_t> marks_;  // by place in the window
  std::uint32_t scheduled_ = 0;      // how many are marked kResend
  Seq scan_;                         // none is marked before this
  // While recovering from a timeout: what was in flight when it ran out, how much of that was
  // resent, and how many frames at a time (0: not recovering).
  Seq recover_;
  Seq resent_;
  std::uint32_t burst_ = 0;
};

// Inline: it is called for every frame, right after one was written to memory that is slow to take
// it.
inline std::optional<Transmission> SenderWindow::take() {
  for (; scheduled_ != 0; ++scan_) {
    if ((mark(scan_) & kResend) == 0) continue;
    mark(scan_) &= static_cast<std::uint8_t>(~kResend);
    --scheduled_;
    return Transmission{scan_++, true};
  }
  if (next_ == end_ || next_ == held_ || !open()) return std::nullopt;
  return Transmission{next_++, false};
}

}  // namespace catchment::host
