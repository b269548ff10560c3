// Counters that the I/O thread writes and any thread reads.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "frame_check.hpp"
#include "retransmit_timer.hpp"

namespace catchment::host {

// One writer, so an increment needs no locked instruction.
class Counter {
 public:
  void add(std::uint64_t amount = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Durations of one kind of event.
struct Durations {
  Counter count;
  Counter total;  // nanoseconds
  Counter least;
  Counter most;

  void add(Nanos duration) {
    const auto value = static_cast<std::uint64_t>(duration < 0 ? 0 : duration);
    if (count.get() == 0 || value < least.get()) least.set(value);
    if (value > most.get()) most.set(value);
    total.add(value);
    count.add();
  }
};

// Durations by length: cell k counts those of at most 2^k microseconds that no cell before it does.
struct DurationHistogram {
  static constexpr std::size_t kCells = 24;  // up to 8.4 s; longer ones are in `all` alone

  Durations all;
  std::array<Counter, kCells> cells;

  void add(Nanos duration) {
    all.add(duration);
    const auto micros = static_cast<std::uint64_t>(duration < 0 ? 0 : (duration + 999) / 1000);
    const std::size_t cell = micros <= 1 ? 0 : std::bit_width(micros - 1);
    if (cell < kCells) cells[cell].add();
  }
};

struct Stats {
  Counter frames_sent;
  Counter frames_received;
  Counter bytes_sent;  // of UDP payload
  Counter bytes_received;
  Counter retransmissions;
  Counter timeouts;
  Counter heartbeats_sent;
  Counter heartbeats_received;
  Counter frames_asked_for;
  Counter saturated;
  Counter nonfinite;
  Counter exponents_guessed;
  Counter exponents_missed;  // of them
  Counter socket_errors;
  std::array<Counter, kRejectCount> rejects;
  Durations credit_stalls;  // data queued, no credit
  Durations pull_stalls;    // the window is full of received frames and no pull is posted
  Durations socket_stalls;  // the socket took no more
  Durations push_latency;
  Durations pull_latency;
  DurationHistogram round_trips;
  Counter round_trip;  // nanoseconds, smoothed
  Counter retransmit_timeout;
  Counter numbers_used;  // sequence numbers of the stream that it sends
  Counter in_flight;
  Counter held;
  Counter processor_time;  // nanoseconds of the I/O thread, once it has ended
};

}  // namespace catchment::host
