// Written so that the compiler vectorizes every loop, as quantize.hpp is.
#include "packed_lanes.hpp"

#include <bit>
#include <cmath>

#include "element_types.hpp"
#include "quantize.hpp"

namespace catchment::host {
namespace {

using wire::DataType;

CATCHMENT_INLINE std::uint16_t big_endian(std::uint16_t half) {
  return std::endian::native == std::endian::little ? __builtin_bswap16(half) : half;
}

CATCHMENT_INLINE std::int32_t load_half(const std::uint8_t* from) {
  return static_cast<std::int16_t>(big_endian(load<std::uint16_t>(from)));
}

CATCHMENT_INLINE void store_half(std::uint8_t* to, std::int32_t half) {
  store(to, big_endian(static_cast<std::uint16_t>(half)));
}

CATCHMENT_INLINE std::int32_t cut_to(std::int32_t value, std::int32_t limit) {
  const std::int32_t low = value < limit ? value : limit;
  return low > -limit ? low : -limit;
}

struct Half {
  static constexpr std::size_t kBytes = kHalfBytes;
  CATCHMENT_INLINE static std::int32_t fit(std::int32_t rounded, std::int32_t limit) {
    return cut_to(rounded, limit);
  }
  CATCHMENT_INLINE static void store(std::uint8_t* to, std::int32_t value) {
    store_half(to, value);
  }
};

struct Whole {
  using Word = std::uint32_t;
};

// A product with the scale is exact: 16 bits, and no scale is below 2^-143.
template <typename Type>
CATCHMENT_INLINE std::uint32_t to_type(const std::uint8_t* __restrict halves, std::size_t count,
                                       float scale, std::uint8_t* __restrict target) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t half = load_half(halves + i * kHalfBytes);
    const auto magnitude = static_cast<std::uint32_t>(half < 0 ? -half : half);
    most = magnitude > most ? magnitude : most;
    std::uint8_t* const to = target + i * sizeof(typename Type::Word);
    if constexpr (requires { Type::narrow(scale); }) {
      store(to, Type::narrow(static_cast<float>(half) * scale));
    } else {
      store(to, static_cast<std::uint32_t>(half));
    }
  }
  return most;
}

}  // namespace

CATCHMENT_FOR_EACH_PROCESSOR
Cut quantize_packed(DataType type, const std::uint8_t* source, std::size_t count, int exponent,
                    HalfRange range, std::uint8_t* halves) {
  const int bits = kHalfBits - range.headroom();
  const int power = bits - exponent;
  // The largest number that rounds to 2^bits, which is even.
  const Bounds bounds{.end = power_of_two(bits) + 0.5F, .limit = range.limit()};
  switch (type) {
    case DataType::kFP32:
      return quantize_floats<Fp32, Half>(source, count, power, bounds, halves);
    case DataType::kFP16:
      return quantize_floats<Fp16, Half>(source, count, power, bounds, halves);
    case DataType::kBF16:
      return quantize_floats<Bf16, Half>(source, count, power, bounds, halves);
    case DataType::kINT32:
    case DataType::kBYTES:
      break;
  }
  return {};  // the callers take floats only
}

CATCHMENT_FOR_EACH_PROCESSOR
std::uint32_t dequantize_packed(const std::uint8_t* halves, std::size_t count, int exponent,
                                HalfRange range, DataType type, std::uint8_t* target) {
  const float scale = std::ldexp(1.0F, exponent + range.headroom() - kHalfBits);
  switch (type) {
    case DataType::kFP32:
      return to_type<Fp32>(halves, count, scale, target);
    case DataType::kFP16:
      return to_type<Fp16>(halves, count, scale, target);
    case DataType::kBF16:
      return to_type<Bf16>(halves, count, scale, target);
    case DataType::kINT32:
    case DataType::kBYTES:
      break;
  }
  return to_type<Whole>(halves, count, scale, target);
}

}  // namespace catchment::host
