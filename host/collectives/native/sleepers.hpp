// The threads that sleep on one port, and how others wake them.
//
// A port wakes those that sleep on it once it is armed, and every turn disarms it.  So whoever has
// taken a turn while others sleep either sleeps too, which arms it again, or wakes one of them,
// which will.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "catchment/common/file_descriptor.hpp"

namespace catchment::host {

class Sleepers {
 public:
  // A thread that sleeps, or is about to, as long as this lives.
  class Sleeper {
   public:
    // `done`: becomes true when the thread has what it waits for; null: it waits for nothing.
    Sleeper(Sleepers& all, const std::atomic<bool>* done);
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    ~Sleeper();

    // Readable once the thread is woken; -1, which poll() takes for none: the process has no
    // descriptor left, and nobody can wake the thread.
    int descriptor() const { return bell_.get(); }

   private:
    friend class Sleepers;

    // With the mutex.
    void wake();

    Sleepers& all_;
    const std::atomic<bool>* done_;
    FileDescriptor bell_;
    bool woken_ = false;
  };

  // Wakes those that have what they wait for.
  void wake_done();
  // Has one of them awake: one that waits for something, if there is any.
  void wake_one();
  void wake_all();

 private:
  friend class Sleeper;

  std::mutex mutex_;
  std::atomic<std::size_t> count_{0};  // of sleepers_
  std::vector<Sleeper*> sleepers_;
  std::vector<FileDescriptor> bells_;  // of those that are awake
};

}  // namespace catchment::host
