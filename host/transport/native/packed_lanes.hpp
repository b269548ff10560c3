// Packed lanes: floats to 16-bit integers with a shared exponent, two in a lane, and back; the
// bit-exact definition is sim/golden/packed_lanes.py.  Halves are big-endian and lie in the order
// of the elements, as in a frame.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numbers.hpp"
#include "wire.hpp"

namespace catchment::host {

inline constexpr std::size_t kHalfBytes = 2;
inline constexpr std::uint32_t kHalvesInLane = 2;
inline constexpr int kHalfBits = 15;  // of a half beside its sign

// What the numbers of a job with so many workers have in common.
class HalfRange {
 public:
  explicit constexpr HalfRange(std::uint32_t workers)
      : workers_(static_cast<std::int32_t>(workers)), headroom_(host::headroom(workers)) {}

  constexpr int headroom() const { return headroom_; }
  // The largest magnitude of one worker's half.
  constexpr std::int32_t limit() const {
    const std::int32_t power = 1 << (kHalfBits - headroom_);
    const std::int32_t share = ((1 << kHalfBits) - 1) / workers_;
    return power < share ? power : share;
  }

 private:
  std::int32_t workers_;
  int headroom_;
};

// Converts `count` floats at `source` to halves: q = round_half_even(x * 2^(15-h-E)), cut to
// [-limit, limit]; what rounds beyond 2^(15-h) counts as saturated, and infinities and NaN go to
// the end that their sign bit names.
Cut quantize_packed(wire::DataType type, const std::uint8_t* source, std::size_t count,
                    int exponent, HalfRange range, std::uint8_t* halves);

// Converts `count` sums of halves to elements at `target`: q * 2^(E+h-15), rounded once, half to
// even, to the type; int32 gets q itself.  Returns the largest |q|.
std::uint32_t dequantize_packed(const std::uint8_t* halves, std::size_t count, int exponent,
                                HalfRange range, wire::DataType type, std::uint8_t* target);

}  // namespace catchment::host
