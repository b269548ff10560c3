// Mutated and random frames through a Dataplane, every one accounted for; no Python per frame.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "catchment/softswitch/dataplane.hpp"

namespace catchment::softswitch {

struct FuzzReport {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::uint64_t drops[kDropCauses] = {};
};

/// Injects `count` frames: one in ten random, the others mutations of `seeds` (port, frame) by
/// random ports below `ports`. Throws std::runtime_error with the frame in hexadecimal for one that
/// neither left nor was counted as dropped, that was not counted as received, or whose copies do
/// not add up with the transmit counters. The same seed makes the same frames.
FuzzReport fuzz(Dataplane& dataplane,
                const std::vector<std::pair<std::uint32_t, std::string>>& seeds,
                std::uint64_t count, std::uint32_t ports, std::uint64_t seed);

}  // namespace catchment::softswitch
