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
  /// For control calls.
  class Control {
   public:
    explicit Control(Gate& gate) : gate_(gate) {
      gate_.waiting_.fetch_add(1);
      gate_.mutex_.lock();
      gate_.waiting_.fetch_sub(1);
    }
    ~Control() { gate_.mutex_.unlock(); }
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

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
  std::mutex mutex_;
  std::atomic<int> waiting_{0};
};

}  // namespace catchment::softswitch
