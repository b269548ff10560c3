// The lock between whoever runs the program and the control side, in memory that processes may
// share.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "catchment/common/cache_line.hpp"

namespace catchment::softswitch {

/// Whether registers are what whole frames have left.
enum class Soundness : std::uint32_t {
  sound,
  torn,    // somebody died with the lock: nobody runs a frame before all registers are new
  closed,  // the switch has ended
};

/// What lies in the state's memory, one for each data plane.
struct GateState {
  GateState();
  ~GateState() = default;  // others may still look at it: the mutex stays one
  GateState(const GateState&) = delete;
  GateState& operator=(const GateState&) = delete;

  pthread_mutex_t mutex;                  // robust: its next owner hears that the last one died
  std::atomic<std::uint32_t> arrived{0};  // control calls so far; wraps
  std::atomic<std::uint32_t> entered{0};  // those of them that got in
  std::atomic<Soundness> soundness{Soundness::sound};
  /// 1 from when a caller has the mutex until it has given it back. Who waits looks here, so that
  /// the mutex's line stays with its owner. This is a hint: it may come late, and a caller that
  /// dies leaves it at 1. So a waiter believes it for as long as it spins, and then waits for the
  /// mutex (sim/protocol/models/in_place_hint.pml).
  alignas(kCacheLine) std::atomic<std::uint32_t> occupied{0};
};

/// Notes that registers may not be what whole frames have left; for the owner of the mutex.
void note_torn(GateState& state);
/// Notes that the last owner of the mutex died with it; for the new one.
void note_death(GateState& state);
/// Whether fewer control calls have entered than had arrived.
inline bool missing(const GateState& state, std::uint32_t arrived) {
  return static_cast<std::int32_t>(arrived - state.entered.load()) > 0;
}
/// Waits, without the lock, until as many control calls have entered as had arrived, or until then
/// on the monotonic clock (in nanoseconds; 0: for ever). Whether they have.
bool let_in(GateState& state, std::uint32_t arrived, std::int64_t until_ns);

/// A mutex that packet threads, which take it again and again, cannot keep from the others: every
/// control call that waits when a batch is about to begin gets in before that batch does, so that
/// it waits for the one batch at most that has begun already.
///
/// Whoever gets the lock here finds sound state: what somebody who died with the lock left behind
/// is repaired first.
class Gate {
 public:
  /// `repair` sets all registers to their initial values; it is called with the lock.
  Gate(GateState& state, std::function<void()> repair)
      : state_(state), repair_(std::move(repair)) {}

  /// The end of the state: nobody runs a frame from now on. Waits for one that is being run, but
  /// not for long.
  void close();

  /// The lock of one control call. Inside a Hold of the same thread it has nothing to do.
  class Control {
   public:
    explicit Control(Gate& gate) : gate_(gate.held_by_this_thread() ? nullptr : &gate) {
      if (gate_ != nullptr) {
        gate_->lock_with_priority();
      }
    }
    ~Control() {
      if (gate_ != nullptr) {
        gate_->unlock();
      }
    }
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

   private:
    Gate* gate_;
  };

  /// The lock of several control calls of one thread that no packet may come between.
  class Hold {
   public:
    explicit Hold(Gate& gate) : gate_(gate) {
      gate_.lock_with_priority();
      gate_.holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    ~Hold() {
      gate_.holder_.store({}, std::memory_order_relaxed);
      gate_.unlock();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Gate& gate_;
  };

  /// The lock of a batch of packets.
  class Batch {
   public:
    explicit Batch(Gate& gate) : gate_(gate) {
      gate_.lock();
      // Control calls that came while another batch held the mutex go first; those that come from
      // now on wait for this batch, or many of them could keep packets out for ever.
      const std::uint32_t arrived = gate_.state_.arrived.load();
      if (missing(gate_.state_, arrived)) [[unlikely]] {
        gate_.unlock();
        let_in(gate_.state_, arrived, 0);
        gate_.lock();
      }
    }
    ~Batch() { gate_.unlock(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

   private:
    Gate& gate_;
  };

 private:
  void lock();
  void unlock() { pthread_mutex_unlock(&state_.mutex); }
  void lock_with_priority();
  // Only this thread ever stores its own id, so that a stale answer cannot be a wrong one.
  bool held_by_this_thread() const {
    return holder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  GateState& state_;
  std::function<void()> repair_;
  std::atomic<std::thread::id> holder_{};
};

}  // namespace catchment::softswitch
