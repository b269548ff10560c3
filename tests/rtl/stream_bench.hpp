// Drives a module's AXI-Stream ports from arrays, with random gaps on both sides, and checks the
// handshake law on its outputs: once valid, a beat stays as it is until it is taken.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>

#include "rtl/harness/top.hpp"

constexpr std::size_t kWords = 16;  // 32-bit words in a beat
constexpr std::size_t kBytes = 4 * kWords;

// One beat as Python lays it out.
struct Beat {
  std::uint32_t data[kWords];
  std::uint64_t keep;
  std::uint64_t user;
  std::uint32_t last;
  std::uint32_t reserved;
};

struct Outcome {
  std::uint64_t beats = 0;
  std::uint64_t clocks = 0;       // from the first beat offered to the last one taken
  std::uint64_t broken_laws = 0;  // beats that changed or vanished while they waited
};

struct StreamRun {
  const Beat* in;
  std::uint64_t count;
  Beat* out;
  std::uint64_t room;
  std::uint32_t idle;   // of 256 clocks: nothing is offered
  std::uint32_t stall;  // of 256 clocks: nothing is taken
  std::uint32_t seed;
};

// Until all is offered and nothing has come out for a while, or the room is full.
template <typename Put, typename Take>
Outcome run_stream(Top& top, const StreamRun& run, Put put, Take take) {
  std::mt19937 random(run.seed);
  auto gap = [&](std::uint32_t of256) { return (random() & 255U) < of256; };
  auto edge = [&] {
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
  };
  Outcome outcome;
  top.rst = 1;
  top.s_axis_tvalid = 0;
  top.m_axis_tready = 0;
  for (int i = 0; i < 4; ++i) edge();
  top.rst = 0;
  std::uint64_t offered = 0;
  std::uint64_t quiet = 0;
  bool offering = false;
  bool waiting = false;
  Beat waited{};
  for (std::uint64_t clock = 1; quiet < 4096 && outcome.beats < run.room; ++clock, ++quiet) {
    if (!offering) offering = offered < run.count && !gap(run.idle);
    top.s_axis_tvalid = offering;
    if (offering) put(top, run.in[offered]);
    top.m_axis_tready = !gap(run.stall);
    top.clk = 0;
    top.eval();
    if (waiting && !top.m_axis_tvalid) ++outcome.broken_laws;
    waiting = top.m_axis_tvalid && !top.m_axis_tready;
    if (top.m_axis_tvalid) {
      Beat now{};
      take(top, now);
      if (waited.reserved != 0) {
        now.reserved = 1;
        outcome.broken_laws += std::memcmp(&now, &waited, sizeof(Beat)) != 0;
      }
      now.reserved = 1;
      waited = now;
      if (top.m_axis_tready) {
        now.reserved = 0;
        run.out[outcome.beats++] = now;
        outcome.clocks = clock;
        waited.reserved = 0;
        quiet = 0;
      }
    }
    if (offering && top.s_axis_tready) {
      offering = false;
      ++offered;
      quiet = 0;
    }
    top.clk = 1;
    top.eval();
  }
  return outcome;
}
