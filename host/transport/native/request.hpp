// One push or pull (LuWu, Table 1: vaddr, len, cmptPtr) and its completion.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "catchment/common/serial.hpp"
#include "retransmit_timer.hpp"
#include "wire.hpp"

namespace catchment::host {

// What host.EndpointError carries.
struct Failure {
  std::string message;
  std::string kind;
  std::string stream;
  std::optional<Seq> seq;
  std::string peer;
  std::string hint;
  bool fatal = false;
};

// The memory a request moves; the caller keeps it alive and in place until the request is done.
struct Memory {
  std::uint8_t* address = nullptr;
  std::size_t elements = 0;
  wire::DataType type = wire::DataType::kBYTES;
};

// How floats become lanes: with an E that the caller gives, or each vector with its own, on which
// the workers agree (all-reduce only).
struct Scaling {
  int exponent = 0;
  bool block = false;
};

// What a completed request learned; valid once it is done.
struct Outcome {
  std::uint8_t flags = 0;     // of all its frames, ORed
  int exponent = 0;           // of a block-scaled message the largest of its vectors'
  std::uint32_t max_raw = 0;  // largest |q| pulled
  double max_abs = 0;
  std::uint64_t saturated = 0;
  std::uint64_t nonfinite = 0;
  Nanos latency = 0;
  std::optional<Failure> failure;
};

class Request {
 public:
  Request(Memory memory, Scaling scaling, Nanos now)
      : memory(memory), submitted(now), block(scaling.block) {
    outcome.exponent = scaling.exponent;
  }

  const Memory memory;
  const Nanos submitted;
  const bool block;  // the message is block-scaled
  Outcome outcome;   // the I/O thread's until done

  bool done() const { return done_.load(std::memory_order_acquire); }

  // The I/O thread calls it, once.
  void finish(Nanos now) {
    outcome.latency = now - submitted;
    {
      const std::scoped_lock lock(mutex_);
      done_.store(true, std::memory_order_release);
    }
    finished_.notify_all();
  }

  void fail(Failure failure, Nanos now) {
    outcome.failure = std::move(failure);
    finish(now);
  }

  // Waits until the request is done; false when that takes longer than `limit`.
  bool wait_for(std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    return finished_.wait_for(lock, limit, [this] { return done(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::atomic<bool> done_{false};
};

}  // namespace catchment::host
