// Time and frames of the co-simulation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace catchment::cosim {

using Picos = std::int64_t;

inline constexpr Picos kClock = 4000;  // 250 MHz

// What Ethernet adds on the wire: preamble and start delimiter, FCS, gap between frames.
inline constexpr std::size_t kPreamble = 8;
inline constexpr std::size_t kFcs = 4;
inline constexpr std::size_t kGap = 12;
inline constexpr std::size_t kShortest = 60;  // without FCS; shorter ones are padded

inline constexpr std::size_t wire_bytes(std::size_t frame) {
  return kPreamble + std::max(frame, kShortest) + kFcs + kGap;
}

using Bytes = std::vector<std::uint8_t>;

// A frame, without FCS, at the end of a line.
struct Arrival {
  std::shared_ptr<const Bytes> bytes;
  bool damaged = false;  // its FCS is wrong
  Picos first = 0;       // when the first bit of its preamble arrives
  Picos last = 0;        // and the last of its FCS
};

}  // namespace catchment::cosim
