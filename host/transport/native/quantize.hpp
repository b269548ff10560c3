// Floats times a power of two, rounded to the integers that lanes hold: one loop for whole lanes
// and for their halves.  Written so that the compiler vectorizes it: no branches, no calls,
// unaligned access by memcpy.  Needs -fno-math-errno -fno-trapping-math; the default rounding mode,
// denormals on.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "element_types.hpp"
#include "numbers.hpp"

namespace catchment::host {

// What is not cut: products of at most `end` in magnitude.  What is becomes `limit`, with its sign.
struct Bounds {
  float end = 0.0F;
  std::int32_t limit = 0;
};

// 2^power for a power that a normal float has: of every exponent, and as many bits as lanes have.
CATCHMENT_INLINE float power_of_two(int power) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(power + 127) << 23);
}

// The common case: nothing is cut, and 2^power is a float.  Returns false, with the lanes
// unspecified, when something has to be cut after all.  A `Lane` has kBytes, fit(), which cuts what
// was rounded up to more than its limit, and store().
template <typename Type, typename Lane>
CATCHMENT_INLINE bool quantize_inside(const std::uint8_t* __restrict source, std::size_t count,
                                      float factor, Bounds bounds, std::uint8_t* __restrict lanes) {
  constexpr std::uint32_t kMagnitudeBits = 0x7fff'ffffU;
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits =
        Type::widen(load<typename Type::Word>(source + i * sizeof(typename Type::Word)));
    const float scaled = std::bit_cast<float>(bits) * factor;
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(scaled) & kMagnitudeBits;
    most = magnitude > most ? magnitude : most;  // as integers, NaN and infinity are the largest
    const auto rounded = static_cast<std::int32_t>(__builtin_irintf(scaled));
    Lane::store(lanes + i * Lane::kBytes, Lane::fit(rounded, bounds.limit));
  }
  return most <= std::bit_cast<std::uint32_t>(bounds.end);
}

template <typename Type, typename Lane>
CATCHMENT_INLINE Cut quantize_cut(const std::uint8_t* __restrict source, std::size_t count,
                                  int power, Bounds bounds, std::uint8_t* __restrict lanes) {
  // Two factors, because 2^158 is no float.  A product that underflows or overflows here is one
  // that rounds to 0 or is cut anyway.
  const float first = power_of_two(power > 64 ? 64 : power);
  const float second = power_of_two(power > 64 ? power - 64 : 0);
  Cut cut;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits =
        Type::widen(load<typename Type::Word>(source + i * sizeof(typename Type::Word)));
    const float scaled = std::bit_cast<float>(bits) * first * second;
    const bool inside = std::fabs(scaled) <= bounds.end;  // false for NaN
    const auto rounded = static_cast<std::int32_t>(__builtin_rintf(inside ? scaled : 0.0F));
    const std::int32_t named = (bits >> 31) != 0 ? -bounds.limit : bounds.limit;
    Lane::store(lanes + i * Lane::kBytes, inside ? Lane::fit(rounded, bounds.limit) : named);
    cut.saturated += inside ? 0U : 1U;
    cut.nonfinite += (bits & kExponentBits) == kExponentBits ? 1U : 0U;
  }
  return cut;
}

template <typename Type, typename Lane>
CATCHMENT_INLINE Cut quantize_floats(const std::uint8_t* source, std::size_t count, int power,
                                     Bounds bounds, std::uint8_t* lanes) {
  constexpr std::size_t kChunk = 1024;  // what stays in the nearest cache for a second look
  constexpr int kLargestPower = 127;
  Cut total;
  for (std::size_t done = 0; done < count; done += kChunk) {
    const std::size_t part = count - done < kChunk ? count - done : kChunk;
    const std::uint8_t* const from = source + done * sizeof(typename Type::Word);
    std::uint8_t* const to = lanes + done * Lane::kBytes;
    if (power <= kLargestPower &&
        quantize_inside<Type, Lane>(from, part, power_of_two(power), bounds, to)) {
      continue;
    }
    const Cut cut = quantize_cut<Type, Lane>(from, part, power, bounds, to);
    total.saturated += cut.saturated;
    total.nonfinite += cut.nonfinite;
  }
  return total;
}

}  // namespace catchment::host
