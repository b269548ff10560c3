// Faults that a port inflicts on its frames, below the P4 program: loss, duplication, reordering,
// delay, a rate. For experiments on kernels whose queueing disciplines cannot.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "catchment/softswitch/status.hpp"

namespace catchment::softswitch {

/// What happens to the frames of one direction. Probabilities are per frame, 0 to 1.
struct FaultRates {
  double loss = 0;
  double duplication = 0;
  /// A frame is overtaken: by one to three later ones if there is no delay, else it skips the delay
  /// and overtakes those that wait.
  double reordering = 0;
  std::chrono::nanoseconds delay{0};
  /// The delay is uniform in delay - jitter .. delay + jitter; frames leave in the order of their
  /// times.
  std::chrono::nanoseconds jitter{0};
  /// Bits of Ethernet frames (without preamble and check sequence) per second; 0: no limit. Frames
  /// pass one after the other, as through a link of this rate, before they are delayed.
  double rate = 0;
  /// Bytes that may wait for the link; a frame for which there is no room is dropped.
  std::uint64_t queue = 0;

  friend bool operator==(const FaultRates&, const FaultRates&) = default;
  [[nodiscard]] bool none() const { return *this == FaultRates{}; }
};

/// Faults of a port: `in` before frames reach the program, `out` after they left it.
struct PortFaults {
  FaultRates in;
  FaultRates out;
  /// The same seed, port and frames give the same faults.
  std::uint64_t seed = 0;

  /// `loss=0.01,in.dup=0.5%,out.delay=200us,jitter=50us,reorder=0.01,seed=7`, or `off`; also
  /// `rate=100mbit,queue=256k` (the queue is 256 KiB where only a rate is given). Without
  /// `in.` or `out.` a key means both directions; without a seed the system gives one.
  static Result<PortFaults> parse(std::string_view text);
  /// The faults as text that parse() reads.
  [[nodiscard]] std::string text() const;
};

/// What came of it, in frames.
struct FaultCounters {
  std::uint64_t seen = 0;
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t delayed = 0;
  std::uint64_t overflow = 0;  // lost since too many were being held, or waited for the link
};

}  // namespace catchment::softswitch
