// Time and frames of the co-simulation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/world/native/ethernet.hpp"
#include "sim/world/native/time.hpp"

namespace catchment::cosim {

using world::kFcs;
using world::kPreamble;
using world::kShortest;
using world::Picos;

inline constexpr Picos kClock = 4000;  // 250 MHz

using Bytes = std::vector<std::uint8_t>;

// A frame, without FCS, at the end of a line.
struct Arrival {
  std::shared_ptr<const Bytes> bytes;
  bool damaged = false;  // its FCS is wrong
  Picos first = 0;       // when the first bit of its preamble arrives
  Picos last = 0;        // and the last of its FCS
};

}  // namespace catchment::cosim
