// The lock between the packet thread and the control side.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace catchment::softswitch {

/// A mutex that the packet thread, which takes it again and again, cannot keep from the others:
/// between two batches it stands back while anybody waits.
class Gate {
 public:
  /// For control calls. Inside a Hold of the same thread it has nothing to do.
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

  /// For several control calls of one thread that no packet may come between.
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

  /// For a batch of packets.
  class Batch {
   public:
    explicit Batch(Gate& gate) : gate_(gate) {
      // Waiters get in once each; more of them may come, so the patience has an end.
      for (int patience = 0; patience < 64 && gate_.waiting_.load(std::memory_order_relaxed) > 0;
           ++patience) {
        std::this_thread::yield();
      }
      gate_.mutex_.lock();
    }
    ~Batch() { gate_.mutex_.unlock(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

   private:
    Gate& gate_;
  };

 private:
  void lock_with_priority() {
    waiting_.fetch_add(1);
    mutex_.lock();
    waiting_.fetch_sub(1);
  }
  // Only this thread ever stores its own id, so that a stale answer cannot be a wrong one.
  bool held_by_this_thread() const {
    return holder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  std::mutex mutex_;
  std::atomic<int> waiting_{0};
  std::atomic<std::thread::id> holder_{};
};

}  // namespace catchment::softswitch
