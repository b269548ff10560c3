// What hosts do with elements beside converting them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire.hpp"

namespace catchment::host {

// Writes the mean of `count` lanes: each is converted as dequantize() does to fp32, divided by
// `ranks` in fp32, and rounded half to even to the type.
void mean(const std::uint8_t* lanes, std::size_t count, int exponent, int headroom,
          std::uint32_t ranks, wire::DataType type, std::uint8_t* target);

// target[i] = max(target[i], other[i]); NaN if either is.
void maximum(wire::DataType type, const std::uint8_t* other, std::size_t count,
             std::uint8_t* target);

}  // namespace catchment::host
