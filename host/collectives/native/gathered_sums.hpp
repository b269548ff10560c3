// Sums of few elements, made by every rank of all ranks' words; the definition is
// sim/golden/collectives.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire.hpp"

namespace catchment::host {

// Arrays up to this long are gathered, not scaled.
inline constexpr std::uint64_t kGatheredBytes = 1024;

// Adds `ranks` arrays that lie `stride` bytes apart, `count` floats of each, as doubles in the
// order of the ranks; rounded once, half to even.  `divisor`: 1, or the ranks for means, which are
// made of the sums as fp32.
void add_gathered(wire::DataType type, const std::uint8_t* arrays, std::size_t stride,
                  std::uint32_t ranks, std::size_t count, std::uint32_t divisor,
                  std::uint8_t* target);

// How many floats are NaN or infinite.
std::uint32_t count_nonfinite(wire::DataType type, const std::uint8_t* elements, std::size_t count);

// Makes `count` floats NaN.
void fill_nan(wire::DataType type, std::size_t count, std::uint8_t* target);

}  // namespace catchment::host
