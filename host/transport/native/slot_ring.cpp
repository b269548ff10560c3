#include "slot_ring.hpp"

#include <algorithm>
#include <bit>

namespace catchment::host {

SlotRing::SlotRing(Seq base, std::uint32_t window, std::uint32_t slots, RetransmitLimits limits,
                   std::uint32_t jitter_seed)
    : window_(window),
      job_slots_(slots),
      mask_(std::bit_ceil(window) - 1),
      oldest_(base),
      lacks_(base),
      next_(base),
      timer_(limits, jitter_seed),
      slots_(mask_ + 1),
      reminded_(window - 1) {}

Seq SlotRing::begin(Nanos now) {
  start(slots_[place(next_)], State::kAwaitsSum, now);
  return next_++;
}

void SlotRing::start(Slot& slot, State state, Nanos now) {
  slot.state = state;
  slot.attempts = 0;
  slot.sent_at = now;
  slot.deadline = timer_.deadline(0, now);
  earliest_ = std::min(earliest_, slot.deadline);
}

void SlotRing::answered(Slot& slot, Nanos now) {
  if (slot.attempts == 0)
    timer_.on_answer(now - slot.sent_at);
  else
    timer_.on_late_answer();
}

bool SlotRing::awaits_sum(Seq seq) const {
  return begun(seq) && slots_[place(seq)].state == State::kAwaitsSum;
}

RoundEvent SlotRing::on_sum(Seq seq, Nanos now) {
  if (!begun(seq)) return strange(seq);
  Slot& slot = slots_[place(seq)];
  if (slot.state != State::kAwaitsSum) return RoundEvent::kRepeated;
  answered(slot, now);
  start(slot, State::kAwaitsConfirmation, now);
  while (lacks_ != next_ && !awaits_sum(lacks_)) ++lacks_;
  if (lacks_ != next_) revive(slots_[place(lacks_)], now);
  return RoundEvent::kTaken;
}

void SlotRing::revive(Slot& slot, Nanos now) {
  if (slot.deadline != kNever) return;
  slot.attempts = 1;
  slot.deadline = timer_.deadline(slot.attempts, now);
  earliest_ = std::min(earliest_, slot.deadline);
}

RoundEvent SlotRing::on_confirmation(Seq seq, Nanos now) {
  if (!begun(seq)) return strange(seq);
  Slot& slot = slots_[place(seq)];
  // Confirmed before this worker has acknowledged: the switch does not do that.
  if (slot.state == State::kAwaitsSum) return RoundEvent::kImpossible;
  if (slot.state == State::kFree) return RoundEvent::kRepeated;
  answered(slot, now);
  slot.state = State::kFree;
  slot.deadline = kNever;
  while (oldest_ != next_ && slots_[place(oldest_)].state == State::kFree) {
    ++oldest_;
    ++confirmed_;
    reminded_ = window_ - 1;
  }
  if (idle()) {
    earliest_ = kNever;
  } else {
    revive(slots_[place(oldest_)], now);
  }
  return RoundEvent::kTaken;
}

std::optional<RoundRetry> SlotRing::take_retry(Nanos now) {
  if (const auto reminder = take_reminder()) return reminder;
  if (now < earliest_) return std::nullopt;
  bool summed = true;  // all rounds before this one
  for (Seq seq = oldest_; seq != next_; ++seq) {
    Slot& slot = slots_[place(seq)];
    const bool leads = summed && slot.state == State::kAwaitsSum;
    summed = summed && slot.state != State::kAwaitsSum;
    if (now < slot.deadline) continue;
    ++slot.attempts;
    const bool on = seq == oldest_ || leads || slot.attempts < kRetriesAhead;
    slot.deadline = on ? timer_.deadline(slot.attempts, now) : kNever;
    if (seq == oldest_ && slot.attempts > kAcksAlone) reminders_ = kReminders;
    if (slot.state == State::kAwaitsSum) return RoundRetry{seq, true, false};
    return RoundRetry{seq, slot.attempts > kAcksAlone, true};
  }
  earliest_ = deadline();
  return std::nullopt;
}

// Takes the next confirmed round to acknowledge again.  With equal windows the round that another
// worker misses lies a window back; with others, anywhere up to the job's slots.
std::optional<RoundRetry> SlotRing::take_reminder() {
  const auto furthest = static_cast<std::uint32_t>(std::min<std::uint64_t>(job_slots_, confirmed_));
  if (reminders_ == 0 || furthest == 0) return std::nullopt;
  --reminders_;
  reminded_ = reminded_ % furthest + 1;
  return RoundRetry{oldest_ - reminded_, false, true};
}

Nanos SlotRing::deadline() const {
  Nanos earliest = kNever;
  for (Seq seq = oldest_; seq != next_; ++seq) {
    earliest = std::min(earliest, slots_[place(seq)].deadline);
  }
  return earliest;
}

}  // namespace catchment::host
