// Written so that the compiler vectorizes every loop: no branches, no calls, unaligned access by
// memcpy.  Needs -fno-math-errno -fno-trapping-math; the default rounding mode, denormals on.
#include "numbers.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "element_types.hpp"
#include "half_lanes.hpp"

namespace catchment::host {
namespace {

using wire::DataType;

CATCHMENT_INLINE std::uint32_t load_lane(const std::uint8_t* from) {
  const auto word = load<std::uint32_t>(from);
  return std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
}

CATCHMENT_INLINE void store_lane(std::uint8_t* to, std::uint32_t lane) {
  store(to, std::endian::native == std::endian::little ? __builtin_bswap32(lane) : lane);
}

// 2^power for a power that a normal float has.
CATCHMENT_INLINE float power_of_two(int power) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(power + 127) << 23);
}

// ---- to lanes ----------------------------------------------------------------------------------

constexpr std::uint32_t kMagnitudeBits = 0x7fff'ffffU;

// The common case: nothing is cut, and 2^power is a float.  Returns false, with the lanes
// unspecified, when something has to be cut after all.
template <typename Type>
CATCHMENT_INLINE bool quantize_inside(const std::uint8_t* __restrict source, std::size_t count,
                                      int power, float limit, std::uint8_t* __restrict lanes) {
  const float factor = power_of_two(power);
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits =
        Type::widen(load<typename Type::Word>(source + i * sizeof(typename Type::Word)));
    const float scaled = std::bit_cast<float>(bits) * factor;
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(scaled) & kMagnitudeBits;
    most = magnitude > most ? magnitude : most;  // as integers, NaN and infinity are the largest
    store_lane(lanes + i * 4, static_cast<std::uint32_t>(__builtin_irintf(scaled)));
  }
  return most <= std::bit_cast<std::uint32_t>(limit);
}

template <typename Type>
CATCHMENT_INLINE Cut quantize_cut(const std::uint8_t* __restrict source, std::size_t count,
                                  int power, float limit, std::uint8_t* __restrict lanes) {
  // Two factors, because 2^158 is no float.  A product that underflows or overflows here is one
  // that rounds to 0 or is cut anyway.
  const float first = power_of_two(power > 64 ? 64 : power);
  const float second = power_of_two(power > 64 ? power - 64 : 0);
  const auto most = static_cast<std::int32_t>(limit);
  Cut cut;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits =
        Type::widen(load<typename Type::Word>(source + i * sizeof(typename Type::Word)));
    const float scaled = std::bit_cast<float>(bits) * first * second;
    const bool inside = std::fabs(scaled) <= limit;  // false for NaN
    const float kept = inside ? scaled : 0.0F;
    const auto rounded = static_cast<std::int32_t>(__builtin_rintf(kept));
    const std::int32_t end = (bits >> 31) != 0 ? -most : most;
    store_lane(lanes + i * 4, static_cast<std::uint32_t>(inside ? rounded : end));
    cut.saturated += inside ? 0U : 1U;
    cut.nonfinite += (bits & kExponentBits) == kExponentBits ? 1U : 0U;
  }
  return cut;
}

template <typename Type>
CATCHMENT_INLINE Cut quantize_floats(const std::uint8_t* source, std::size_t count, int power,
                                     float limit, std::uint8_t* lanes) {
  constexpr std::size_t kChunk = 1024;  // what stays in the nearest cache for a second look
  constexpr int kLargestPower = 127;
  Cut total;
  for (std::size_t done = 0; done < count; done += kChunk) {
    const std::size_t part = count - done < kChunk ? count - done : kChunk;
    const std::uint8_t* const from = source + done * sizeof(typename Type::Word);
    std::uint8_t* const to = lanes + done * 4;
    if (power <= kLargestPower && quantize_inside<Type>(from, part, power, limit, to)) continue;
    const Cut cut = quantize_cut<Type>(from, part, power, limit, to);
    total.saturated += cut.saturated;
    total.nonfinite += cut.nonfinite;
  }
  return total;
}

// ---- from lanes --------------------------------------------------------------------------------

CATCHMENT_INLINE std::uint32_t magnitude_of(std::uint32_t lane) {
  return static_cast<std::int32_t>(lane) < 0 ? 0U - lane : lane;
}

CATCHMENT_INLINE std::uint32_t copy_lanes(const std::uint8_t* __restrict lanes, std::size_t count,
                                          std::uint8_t* __restrict target) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t lane = load_lane(lanes + i * 4);
    const std::uint32_t magnitude = magnitude_of(lane);
    most = magnitude > most ? magnitude : most;
    store(target + i * 4, lane);
  }
  return most;
}

CATCHMENT_INLINE std::uint32_t to_fp32(const std::uint8_t* __restrict lanes, std::size_t count,
                                       int power, std::uint8_t* __restrict target) {
  std::uint32_t most = 0;
  const float scale = power_of_two(power);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t lane = load_lane(lanes + i * 4);
    const std::uint32_t magnitude = magnitude_of(lane);
    most = magnitude > most ? magnitude : most;
    store(target + i * 4, static_cast<float>(static_cast<std::int32_t>(lane)) * scale);
  }
  return most;
}

// The 16-bit types must not be rounded twice: from 2^24 on, the lower byte becomes one sticky bit,
// so that the float holds the value exactly or on the right side of every boundary.
template <typename Type>
CATCHMENT_INLINE std::uint32_t to_16_bit(const std::uint8_t* __restrict lanes, std::size_t count,
                                         int power, std::uint8_t* __restrict target) {
  std::uint32_t most = 0;
  const float scale = power_of_two(power);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t lane = load_lane(lanes + i * 4);
    const std::uint32_t magnitude = magnitude_of(lane);
    most = magnitude > most ? magnitude : most;
    const std::uint32_t sticky = (magnitude & ~0xffU) | ((magnitude & 0xffU) != 0 ? 0x80U : 0U);
    const std::uint32_t exact = magnitude < (1U << 24) ? magnitude : sticky;
    // At most 24 significant bits.  2^31 becomes -2^31 here, and its lane is negative as well.
    const auto value = static_cast<float>(static_cast<std::int32_t>(exact));
    const std::uint32_t sign = lane & 0x8000'0000U;
    const float scaled = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value * scale) | sign);
    store(target + i * 2, Type::narrow(scaled));
  }
  return most;
}

CATCHMENT_INLINE std::uint32_t to_fp16(const std::uint8_t* lanes, std::size_t count, int power,
                                       std::uint8_t* target) {
  std::uint32_t most = 0;
  const std::size_t done = lanes_to_fp16(lanes, count, power, target, most);
  const std::uint32_t rest =
      to_16_bit<Fp16>(lanes + done * 4, count - done, power, target + done * 2);
  return most > rest ? most : rest;
}

// For scales below the normal floats: slow, and exact through double with rounding to odd.
template <typename Type>
std::uint32_t to_tiny(const std::uint8_t* lanes, std::size_t count, int power,
                      std::uint8_t* target) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t lane = load_lane(lanes + i * 4);
    const std::uint32_t magnitude = magnitude_of(lane);
    most = magnitude > most ? magnitude : most;
    const double exact = std::ldexp(static_cast<double>(static_cast<std::int32_t>(lane)), power);
    const auto nearest = static_cast<float>(exact);
    if constexpr (sizeof(typename Type::Word) == 4) {
      store(target + i * 4, nearest);
    } else {
      auto bits = std::bit_cast<std::uint32_t>(nearest);
      if (static_cast<double>(nearest) != exact) {
        if (std::fabs(static_cast<double>(nearest)) > std::fabs(exact)) --bits;
        bits |= 1U;
      }
      store(target + i * 2, Type::narrow(std::bit_cast<float>(bits)));
    }
  }
  return most;
}

}  // namespace

CATCHMENT_FOR_EACH_PROCESSOR
Cut quantize(DataType type, const std::uint8_t* source, std::size_t count, int exponent,
             int headroom, std::uint8_t* lanes) {
  const int power = 30 - headroom - exponent;
  const float limit = power_of_two(30 - headroom);
  switch (type) {
    case DataType::kFP32:
      return quantize_floats<Fp32>(source, count, power, limit, lanes);
    case DataType::kFP16:
      return quantize_floats<Fp16>(source, count, power, limit, lanes);
    case DataType::kBF16:
      return quantize_floats<Bf16>(source, count, power, limit, lanes);
    case DataType::kINT32:
    case DataType::kBYTES:
      break;
  }
  for (std::size_t i = 0; i < count; ++i)
    store_lane(lanes + i * 4, load<std::uint32_t>(source + i * 4));
  return {};
}

CATCHMENT_FOR_EACH_PROCESSOR
std::uint32_t dequantize(const std::uint8_t* lanes, std::size_t count, int exponent, int headroom,
                         DataType type, std::uint8_t* target) {
  const int power = exponent + headroom - 30;
  const bool normal = power >= -126;
  switch (type) {
    case DataType::kFP32:
      return normal ? to_fp32(lanes, count, power, target)
                    : to_tiny<Fp32>(lanes, count, power, target);
    case DataType::kFP16:
      return normal ? to_fp16(lanes, count, power, target)
                    : to_tiny<Fp16>(lanes, count, power, target);
    case DataType::kBF16:
      return normal ? to_16_bit<Bf16>(lanes, count, power, target)
                    : to_tiny<Bf16>(lanes, count, power, target);
    case DataType::kINT32:
    case DataType::kBYTES:
      break;
  }
  return copy_lanes(lanes, count, target);
}

}  // namespace catchment::host
