// Written so that the compiler vectorizes every loop, as quantize.hpp is.
#include "numbers.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "element_types.hpp"
#include "half_lanes.hpp"
#include "quantize.hpp"

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

struct Lane {
  static constexpr std::size_t kBytes = 4;
  CATCHMENT_INLINE static std::int32_t fit(std::int32_t rounded, std::int32_t /*limit*/) {
    return rounded;  // the limit is a power of two, which nothing inside is rounded beyond
  }
  CATCHMENT_INLINE static void store(std::uint8_t* to, std::int32_t value) {
    store_lane(to, static_cast<std::uint32_t>(value));
  }
};

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
  const Bounds bounds{.end = power_of_two(30 - headroom), .limit = 1 << (30 - headroom)};
  switch (type) {
    case DataType::kFP32:
      return quantize_floats<Fp32, Lane>(source, count, power, bounds, lanes);
    case DataType::kFP16:
      return quantize_floats<Fp16, Lane>(source, count, power, bounds, lanes);
    case DataType::kBF16:
      return quantize_floats<Bf16, Lane>(source, count, power, bounds, lanes);
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
