// How the elements of a vector lie in its lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire.hpp"

namespace catchment::host {

inline constexpr int kLeastExponent = -128;
inline constexpr int kMostExponent = 127;

struct Scale {
  std::int8_t exponent = kLeastExponent;
  // A rank has NaN, an infinity or a number of 2^127 and more in it: marked_vectors.hpp.
  bool marked = false;

  friend bool operator==(const Scale&, const Scale&) = default;
};

// The smallest E, -128..127, with |x| < 2^E for every finite element; denormals need the exponent
// below the smallest normal number.  -128 when all are 0.  Marked if one is not finite or 127 is
// not enough.
Scale scale_of(wire::DataType type, const std::uint8_t* elements, std::size_t count);

// Operations of so few vectors have exponents on a grid: values that are drawn again from the same
// distribution mostly need the same ones, so that data may leave on a guess of them.
inline constexpr std::uint32_t kMostTried = 32;
inline constexpr int kExponentGrid = 4;

// The smallest scale on the grid that holds what `scale` holds; a marked vector has none too much.
constexpr Scale on_grid(Scale scale) {
  if (scale.marked) return scale;
  const int steps = (scale.exponent - kLeastExponent + kExponentGrid - 1) / kExponentGrid;
  const int exponent = kLeastExponent + steps * kExponentGrid;
  return {static_cast<std::int8_t>(exponent < kMostExponent ? exponent : kMostExponent), false};
}

}  // namespace catchment::host
