// The lock between the packet thread and the control side.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace catchment::softswitch {

/// A mutex that packet threads, which take it again and again, cannot keep from the others: every
/// control call that waits when a batch is about to begin gets in before that batch does, so that
/// it waits for the one batch at most that has begun already.
class Gate {
 public:
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
        gate_->mutex_.unlock();
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
      gate_.mutex_.unlock();
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
      gate_.mutex_.lock();
      // Control calls that came while another batch held the mutex go first; those that come from
      // now on wait for this batch, or many of them could keep packets out for ever.
      const std::uint64_t arrived = gate_.arrived_.load();
      if (gate_.entered_.load() < arrived) [[unlikely]] {
        gate_.mutex_.unlock();
        gate_.let_in(arrived);
        gate_.mutex_.lock();
      }
    }
    ~Batch() { gate_.mutex_.unlock(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

   private:
    Gate& gate_;
  };

 private:
  void lock_with_priority() {
    arrived_.fetch_add(1);
    mutex_.lock();
    entered_.fetch_add(1);
    entered_.notify_all();
  }
  /// Waits until as many control calls have entered as had arrived.
  void let_in(std::uint64_t arrived) {
    for (auto entered = entered_.load(); entered < arrived; entered = entered_.load()) {
      entered_.wait(entered);
    }
  }
  // Only this thread ever stores its own id, so that a stale answer cannot be a wrong one.
  bool held_by_this_thread() const {
    return holder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  std::mutex mutex_;
  std::atomic<std::uint64_t> arrived_{0};  // control calls so far
  std::atomic<std::uint64_t> entered_{0};  // those of them that got in
  std::atomic<std::thread::id> holder_{};
};

}  // namespace catchment::softswitch
