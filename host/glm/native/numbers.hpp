// The numbers of a GLM worker (docs/glm.md; sim/golden/glm.py is the definition).
#pragma once

#include <cstdint>
#include <span>

namespace catchment::glm {

inline constexpr std::size_t kBanks = 8;
inline constexpr std::int64_t kActivationLimit = (std::int64_t{1} << 26) - 1;
inline constexpr std::int64_t kDerivativeLimit = (std::int64_t{1} << 19) - 1;
inline constexpr std::int64_t kWeightLimit = (std::int64_t{1} << 31) - 1;
inline constexpr int kMultiplierBits = 16;
inline constexpr int kSigmoidFraction = 12;
inline constexpr std::size_t kSigmoidSegments = 256;
inline constexpr std::int64_t kOne = 1 << 16;

enum class Loss { kSquares, kLogistic, kHinge };

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

// The scale of a sample: its loss's derivative times the step's multiplier.  Labels as in
// sim/golden/glm.py, `derivatives`.
std::int64_t scale_of(Loss loss, std::span<const std::int32_t> table, std::int64_t activation,
                      std::int64_t label, std::int64_t multiplier);

}  // namespace catchment::glm
