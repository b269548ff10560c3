// How long a thread that waits spins and yields before it sleeps.
//
// Being put to sleep and woken costs both sides tens of microseconds, spinning costs a processor.
// So a waiter goes on looking for a while after it last found something: first it spins, then it
// yields the processor between two looks, then it sleeps.  On an oversubscribed machine this fails:
// a yield lasts the whole time slice of another thread, milliseconds, while the kernel runs a
// thread that is woken at once.  A late yield is how a waiter notices, and for a while afterwards
// it sleeps without yielding, and without spinning unless it has a processor for itself.  One that
// spins again and soon has another late yield sleeps for twice as long the next time: where many
// threads wait for each other, the late yield of one holds all of them up.
//
// Nothing here reads a clock, sleeps or yields, but for the one function that says so.
#pragma once

#include <algorithm>
#include <atomic>

#include "catchment/common/clock.hpp"
#include "catchment/common/processor.hpp"

namespace catchment {

/// What a waiter does next.
enum class Waiting { kSpin, kYield, kSleep };

struct PatienceSettings {
  Nanos spin;                 // after the last find, until the waiter sleeps
  Nanos yield_after;          // of that time passes before the waiter begins to yield
  Nanos late_yield;           // a yield that took longer shows an oversubscribed machine
  Nanos oversubscribed_for;   // so long the waiter does not yield, the first time
  Nanos oversubscribed_most;  // and at most
  Nanos spin_always = 0;      // time that it spins before it sleeps, while it does not yield
};

/// A machine that has been oversubscribed for long is tried again after this time at the latest.
inline constexpr Nanos kLongestDoubt = 3200 * kMillisecond;

/// Less than a time slice of Linux, more than the work of a thread that waits itself.
inline constexpr Nanos kLateYield = 500 * kMicrosecond;

/// A packet thread of the switch: a host that answers at once finds the thread awake.  Looking for
/// two microseconds without a yield costs no other thread more than a frame does.
inline constexpr PatienceSettings kSwitchPatience{.spin = 50 * kMicrosecond,
                                                  .yield_after = 2 * kMicrosecond,
                                                  .late_yield = kLateYield,
                                                  .oversubscribed_for = 100 * kMillisecond,
                                                  .oversubscribed_most = kLongestDoubt};

/// A worker that waits for the sums of its vectors.  It yields from the first look on: the switch
/// that adds them may be waiting for this processor.
constexpr PatienceSettings reducer_patience(Nanos spin) {
  return {.spin = spin,
          .yield_after = 0,
          .late_yield = kLateYield,
          .oversubscribed_for = 100 * kMillisecond,
          .oversubscribed_most = kLongestDoubt};
}

/// What another rank does before it gives the processor back: it takes what has come, and sends a
/// window.  One that computes keeps it for a time slice.
inline constexpr Nanos kLateTurn = kMillisecond;

/// What a thread that sleeps costs itself and whoever wakes it, on another processor.
inline constexpr Nanos kWakeUp = 50 * kMicrosecond;

/// A rank in a collective operation.  Where ranks share processors and one computes, the first
/// yield of each other one is late, and the operation behind it takes microseconds: so a rank soon
/// tries again, but not often on a machine that stays busy.  A rank that has a processor for itself
/// spins on it for as long as being woken takes.
constexpr PatienceSettings collective_patience(Nanos spin, bool own_processor) {
  const Nanos alone = own_processor ? std::min(spin, kWakeUp) : 0;
  return {.spin = spin,
          .yield_after = alone,
          .late_yield = kLateTurn,
          .oversubscribed_for = 2 * kMillisecond,
          .oversubscribed_most = kLongestDoubt / 2,
          .spin_always = alone};
}

/// A rank that wants the lock of a data plane which ranks share.  The owner keeps it for some
/// microseconds, some tens where processors are far apart, once it has a processor; where
/// `own_processor` is false, that may be this one.  Where others compute, a rank that sleeps has
/// the lock sooner than one that yields.
constexpr PatienceSettings lock_patience(bool own_processor) {
  constexpr Nanos kHeld = 10 * kMicrosecond;
  constexpr Nanos kLongHeld = 200 * kMicrosecond;  // by one that has not lost its processor
  return {.spin = own_processor ? kLongHeld : kMillisecond,
          .yield_after = own_processor ? kLongHeld : 2 * kMicrosecond,
          .late_yield = kLateTurn,
          .oversubscribed_for = 100 * kMillisecond,
          .oversubscribed_most = kLongestDoubt,
          .spin_always = kHeld};
}

/// One for all threads that wait for the same thing; they may call it at the same time.
class Patience {
 public:
  explicit Patience(PatienceSettings settings) : settings_(settings) {}

  /// Says how a waiter that last found something at `found` waits from `now` on.
  [[nodiscard]] Waiting next(Nanos found, Nanos now) const {
    const Nanos waited = now - found;
    if (oversubscribed(now)) {
      return waited < settings_.spin_always ? Waiting::kSpin : Waiting::kSleep;
    }
    if (waited >= settings_.spin) return Waiting::kSleep;
    return waited >= settings_.yield_after ? Waiting::kYield : Waiting::kSpin;
  }

  /// Whether a yield was late not long ago.
  [[nodiscard]] bool oversubscribed(Nanos now) const {
    return now < oversubscribed_until_.load(std::memory_order_relaxed);
  }

  /// A waiter yielded at `before` and had the processor back at `after`.
  void yielded(Nanos before, Nanos after) {
    if (after - before <= settings_.late_yield) return;
    const Nanos until = oversubscribed_until_.load(std::memory_order_relaxed);
    Nanos sleeps = sleeps_for_.load(std::memory_order_relaxed);
    if (after >= until + sleeps) {
      sleeps = settings_.oversubscribed_for;
    } else if (after >= until) {
      sleeps = std::min(2 * sleeps, settings_.oversubscribed_most);
    }
    sleeps_for_.store(sleeps, std::memory_order_relaxed);
    oversubscribed_until_.store(after + sleeps, std::memory_order_relaxed);
  }

  /// Lets some time pass, as next() said of a waiter that does not sleep.
  void pass(Waiting how, Nanos now) {
    if (how == Waiting::kSpin) {
      Processor::relax();
    } else {
      yield(now);
    }
  }

  /// Yields, and notes how long that took.
  void yield(Nanos now) {
    Processor::yield();
    yielded(now, Processor::now());
  }

 private:
  PatienceSettings settings_;
  std::atomic<Nanos> oversubscribed_until_{0};
  std::atomic<Nanos> sleeps_for_{0};  // without a yield, since the last late one
};

}  // namespace catchment
