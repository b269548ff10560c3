// What hosts do with elements beside converting them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scale.hpp"
#include "wire.hpp"

namespace catchment::host {

// The smallest E, -128..127, with |x| < 2^E for every finite element; denormals count as the
// smallest normal number.  -128 when all are 0.  Marked if one is not finite or 127 is not enough.
Scale scale_of(wire::DataType type, const std::uint8_t* elements, std::size_t count);

// Writes the mean of `count` lanes: each is converted as dequantize() does to fp32, divided by
// `ranks` in fp32, and rounded half to even to the type.
void mean(const std::uint8_t* lanes, std::size_t count, int exponent, int headroom,
          std::uint32_t ranks, wire::DataType type, std::uint8_t* target);

// target[i] = max(target[i], other[i]); NaN if either is.
void maximum(wire::DataType type, const std::uint8_t* other, std::size_t count,
             std::uint8_t* target);

}  // namespace catchment::host
