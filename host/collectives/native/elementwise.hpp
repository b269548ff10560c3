// What hosts do with elements beside converting them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lane_format.hpp"
#include "wire.hpp"

namespace catchment::host {

// Writes the mean of `count` sums: each is converted as `format` does to fp32, divided by `ranks`
// in fp32, and rounded half to even to the type.
void mean(const LaneFormat& format, const std::uint8_t* sums, std::size_t count, int exponent,
          std::uint32_t ranks, wire::DataType type, std::uint8_t* target);

// target[i] = max(target[i], other[i]), IEEE 754's maximum: +0 is more than -0, and NaN more than
// all; of two NaNs, target[i] stays.
void maximum(wire::DataType type, const std::uint8_t* other, std::size_t count,
             std::uint8_t* target);

}  // namespace catchment::host
