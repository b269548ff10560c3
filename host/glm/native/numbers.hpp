// The numbers of a GLM worker (docs/explanation/glm.md; sim/golden/glm.py is the definition).
#pragma once

#include <cstdint>
#include <span>

#include "glm_numbers.hpp"

namespace catchment::glm {

// value / 2^shift to the nearest integer, halves to the even one.
inline std::int64_t round_half_even(std::int64_t value, int shift) {
  const std::int64_t below_half = ((std::int64_t{1} << shift) >> 1) - (shift > 0 ? 1 : 0);
  return (value + below_half + (shift > 0 ? (value >> shift) & 1 : 0)) >> shift;
}

// `value` cut to -limit..limit; counts the cut.
inline std::int64_t saturate(std::int64_t value, std::int64_t limit, std::uint64_t& cuts) {
  const std::int64_t cut = value > limit ? limit : (value < -limit ? -limit : value);
  cuts += cut != value;
  return cut;
}

// 1 / (1 + exp(-z)) by its table of kSigmoidSegments + 1 entries.
std::int64_t sigmoid(std::span<const std::int32_t> table, std::int64_t activation);

// The loss's derivative at a sample.  Labels as in sim/golden/glm.py, `derivatives`.
std::int64_t derivative_of(Loss loss, std::span<const std::int32_t> table, std::int64_t activation,
                           std::int64_t label);

}  // namespace catchment::glm
