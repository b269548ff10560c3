// Floats to int32 lanes with a shared exponent and back (wire-protocol, "Numbers"); the bit-exact
// definition is sim/golden/formats.py.  Lanes are big-endian, as they lie in a frame.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "wire.hpp"

namespace catchment::host {

constexpr std::size_t item_bytes(wire::DataType type) {
  switch (type) {
    case wire::DataType::kBYTES:
      return 1;
    case wire::DataType::kFP16:
    case wire::DataType::kBF16:
      return 2;
    case wire::DataType::kINT32:
    case wire::DataType::kFP32:
      return 4;
  }
  return 1;
}

constexpr bool is_float(wire::DataType type) {
  return type == wire::DataType::kFP32 || type == wire::DataType::kFP16 ||
         type == wire::DataType::kBF16;
}

// h = ceil(log2 workers): bits that the sum of all workers, one or more, may need above one
// worker's.
constexpr int headroom(std::uint32_t workers) { return std::bit_width(workers - 1); }

struct Cut {
  std::uint32_t saturated = 0;  // values outside the range, the non-finite included
  std::uint32_t nonfinite = 0;  // NaN and infinities
};

// Converts `count` elements at `source` to lanes.  int32 is copied.  q = round_half_even(x *
// 2^(30-h-E)), cut to [-2^(30-h), 2^(30-h)]; infinities and NaN go to the end their sign bit names.
Cut quantize(wire::DataType type, const std::uint8_t* source, std::size_t count, int exponent,
             int headroom, std::uint8_t* lanes);

// Converts `count` lanes to elements at `target`: q * 2^(E+h-30), rounded once, half to even, to
// the type; int32 is copied.  Returns the largest |q|.
std::uint32_t dequantize(const std::uint8_t* lanes, std::size_t count, int exponent, int headroom,
                         wire::DataType type, std::uint8_t* target);

}  // namespace catchment::host
