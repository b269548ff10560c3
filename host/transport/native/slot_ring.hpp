// A worker's slots (P4SGD, Algorithm 3, corrected: docs/explanation/protocol.md). Pure: no clock,
// no socket.
//
//   oldest ........................ next
//   first round that the switch     the round to begin
//   has not confirmed               as soon as its slot is free
//
// A sum is taken only while this very round waits for its sum, a confirmation only while it waits
// for its confirmation; everything else that arrives is a repetition or none of ours.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "catchment/common/serial.hpp"
#include "round_timer.hpp"

namespace catchment::host {

enum class RoundEvent : std::uint8_t {
  kTaken,       // the first of its kind: act on it
  kRepeated,    // known already
  kImpossible,  // of a round that was never begun
};

// What a round whose time is over sends again.
struct RoundRetry {
  Seq seq = 0;
  bool vector = false;
  bool ack = false;
};

class SlotRing {
 public:
  // window: rounds that may be under way, at most `slots`, the job's.
  SlotRing(Seq base, std::uint32_t window, std::uint32_t slots, RetransmitLimits limits,
           std::uint32_t jitter_seed);

  // The slot of the next round is free.
  bool open() const { return distance(oldest_, next_) < window_; }
  // Begins the next round: its vector is sent now.
  Seq begin(Nanos now);

  // kTaken: the sum is the caller's, and an acknowledgement is to be sent.
  RoundEvent on_sum(Seq seq, Nanos now);
  RoundEvent on_confirmation(Seq seq, Nanos now);

  // The next round whose time is over: the oldest for as long as it takes, each of the others a few
  // times. That suffices: a worker that lacks the job's oldest open round asks for it, and so do
  // all workers that it needs, for the round has been confirmed to none of them.  At most once per
  // deadline; nothing when there is none. One that waits for its confirmation sends its vector
  // again too after a while: a switch that was restarted has lost the sum that others may still
  // wait for.  For the same reason the rounds that are confirmed here are acknowledged again while
  // the oldest one waits: a worker that missed their confirmation cannot go on, and so neither can
  // this worker.
  std::optional<RoundRetry> take_retry(Nanos now);
  // take_retry may have something to say.
  bool due(Nanos now) const { return now >= earliest_; }
  // Earliest deadline of all, kNever when nothing is under way.
  Nanos deadline() const;

  Seq oldest() const { return oldest_; }
  // The oldest round whose sum is missing: the sums of all before it are here.
  Seq lacks() const { return lacks_; }
  Seq next() const { return next_; }
  bool idle() const { return oldest_ == next_; }
  bool awaits_sum(Seq seq) const;
  // The place of a round's data in an array of `places()` entries.
  std::uint32_t place(Seq seq) const { return seq & mask_; }
  std::uint32_t places() const { return mask_ + 1; }
  const RoundTimer& timer() const { return timer_; }
  // The round trip that was measured since the last call, once.
  std::optional<Nanos> take_sample() { return timer_.take_sample(); }

 private:
  enum class State : std::uint8_t { kFree, kAwaitsSum, kAwaitsConfirmation };
  struct Slot {
    State state = State::kFree;
    std::uint32_t attempts = 0;
    Nanos sent_at = 0;
    Nanos deadline = kNever;
  };

  // How often an acknowledgement is repeated alone.
  static constexpr std::uint32_t kAcksAlone = 2;
  // How often a round is asked for again while an older one is open.  A round that is not answered
  // by then waits for the oldest: repeating all of them would only bury a slow switch.  The first
  // that lacks its sum waits for none: the oldest may lack its confirmation until another worker,
  // which has all its sums and so may be doing other things, turns its machine again.
  static constexpr std::uint32_t kRetriesAhead = 3;
  // Old rounds that are acknowledged again each time the oldest round is late.
  static constexpr std::uint32_t kReminders = 8;

  bool begun(Seq seq) const { return distance(oldest_, seq) < distance(oldest_, next_); }
  // The event of a sequence number that is not under way: an old round's, or one that no member can
  // have sent.
  RoundEvent strange(Seq seq) const {
    return newer(oldest_, seq) ? RoundEvent::kRepeated : RoundEvent::kImpossible;
  }
  void answered(Slot& slot, Nanos now);
  void start(Slot& slot, State state, Nanos now);
  // Asks again for a round that waits for older ones no longer.
  void revive(Slot& slot, Nanos now);
  std::optional<RoundRetry> take_reminder();

  std::uint32_t window_;
  std::uint32_t job_slots_;
  std::uint32_t mask_;
  Seq oldest_;
  Seq lacks_;  // from oldest_ to next_
  Seq next_;
  RoundTimer timer_;
  std::vector<Slot> slots_;
  // No deadline is earlier than this.
  Nanos earliest_ = kNever;
  std::uint64_t confirmed_ = 0;  // rounds before oldest_
  std::uint32_t reminders_ = 0;  // still to be taken
  std::uint32_t reminded_ = 0;   // how far back the last one lay; at first, the own window
};

}  // namespace catchment::host
