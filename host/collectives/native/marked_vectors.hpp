// Vectors in which a rank has NaN, an infinity or a number of 2^127 and more; the definition is
// sim/golden/marked_vectors.py.  Lanes are big-endian, as they lie in a frame.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire.hpp"

namespace catchment::host {

// Converts `count` floats to lanes; returns how many are not finite.
std::uint32_t quantize_marked(wire::DataType type, const std::uint8_t* source, std::size_t count,
                              int exponent, std::uint32_t ranks, std::uint8_t* lanes);

// Converts `count` sums to elements of a float type, rounded once, half to even; `divisor`: 1, or
// the ranks for means, which are made of the sums as fp32.
void dequantize_marked(const std::uint8_t* lanes, std::size_t count, int exponent,
                       std::uint32_t ranks, std::uint32_t divisor, wire::DataType type,
                       std::uint8_t* target);

}  // namespace catchment::host
