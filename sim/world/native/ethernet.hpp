// What Ethernet adds to a frame on the wire.
#pragma once

#include <algorithm>
#include <cstddef>

namespace catchment::world {

inline constexpr std::size_t kPreamble = 8;  // and start delimiter
inline constexpr std::size_t kFcs = 4;
inline constexpr std::size_t kGap = 12;       // between frames
inline constexpr std::size_t kShortest = 60;  // without FCS; shorter frames are padded

/// What a frame that is not padded takes beyond itself.
inline constexpr std::size_t kGapBytes = kPreamble + kFcs + kGap;

/// Bytes that a frame (without FCS) takes on the wire, with the gap behind it.
inline constexpr std::size_t wire_bytes(std::size_t frame) {
  return kPreamble + std::max(frame, kShortest) + kFcs + kGap;
}

}  // namespace catchment::world
