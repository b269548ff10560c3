// How the elements of a vector lie in its lanes.
#pragma once

#include <cstdint>

namespace catchment::host {

inline constexpr int kLeastExponent = -128;
inline constexpr int kMostExponent = 127;

struct Scale {
  std::int8_t exponent = kLeastExponent;
  // A rank has NaN, an infinity or a number of 2^127 and more in it: marked_vectors.hpp.
  bool marked = false;

  friend bool operator==(const Scale&, const Scale&) = default;
};

}  // namespace catchment::host
