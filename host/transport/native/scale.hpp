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

}  // namespace catchment::host
