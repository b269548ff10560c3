// Written so that the compiler vectorizes every loop, as numbers.cpp is.
#include "packed_lanes.hpp"

#include <bit>
#include <cmath>

#include "element_types.hpp"

namespace catchment::host {
namespace {

using wire::DataType;

constexpr std::uint32_t kMagnitudeBits = 0x7fff'ffffU;

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

// The common case: nothing saturates, and 2^power is a float.  Returns false, with the halves
// unspecified, when something does after all.
template <typename Type>
CATCHMENT_INLINE bool quantize_inside(const std::uint8_t* __restrict source, std::size_t count,
                                      float factor, float end, std::int32_t limit,
                                      std::uint8_t* __restrict halves) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits =
        Type::widen(load<typename Type::Word>(source + i * sizeof(typename Type::Word)));
    const float scaled = std::bit_cast<float>(bits) * factor;
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(scaled) & kMagnitudeBits;
    most = magnitude > most ? magnitude : most;  // as integers, NaN and infinity are the largest
    store_half(halves + i * kHalfBytes, cut_to(__builtin_irintf(scaled), limit));
  }
  return most <= std::bit_cast<std::uint32_t>(end);
}

template <typename Type>
CATCHMENT_INLINE Cut quantize_cut(const std::uint8_t* __restrict source, std::size_t count,
                                  int power, float end, std::int32_t limit,
                                  std::uint8_t* __restrict halves) {
  // Two factors, because 2^143 is no float.  A product that underflows or overflows here is one
  // that rounds to 0 or is cut anyway.
  const float first = std::ldexp(1.0F, power > 64 ? 64 : power);
  const float second = std::ldexp(1.0F, power > 64 ? power - 64 : 0);
  Cut cut;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits =
        Type::widen(load<typename Type::Word>(source + i * sizeof(typename Type::Word)));
    const float scaled = std::bit_cast<float>(bits) * first * second;
    const bool inside = std::fabs(scaled) <= end;  // false for NaN
    const auto rounded = static_cast<std::int32_t>(__builtin_rintf(inside ? scaled : 0.0F));
    const std::int32_t named = (bits >> 31) != 0 ? -limit : limit;
    store_half(halves + i * kHalfBytes, inside ? cut_to(rounded, limit) : named);
    cut.saturated += inside ? 0U : 1U;
    cut.nonfinite += (bits & kExponentBits) == kExponentBits ? 1U : 0U;
  }
  return cut;
}

template <typename Type>
CATCHMENT_INLINE Cut quantize_floats(const std::uint8_t* source, std::size_t count, int exponent,
                                     HalfRange range, std::uint8_t* halves) {
  constexpr std::size_t kChunk = 1024;  // what stays in the nearest cache for a second look
  constexpr int kLargestPower = 127;
  const int bits = kHalfBits - range.headroom;
  const int power = bits - exponent;
  // The largest number that rounds to 2^bits, which is even.
  const float end = std::ldexp(1.0F, bits) + 0.5F;
  Cut total;
  for (std::size_t done = 0; done < count; done += kChunk) {
    const std::size_t part = count - done < kChunk ? count - done : kChunk;
    const std::uint8_t* const from = source + done * sizeof(typename Type::Word);
    std::uint8_t* const to = halves + done * kHalfBytes;
    if (power <= kLargestPower &&
        quantize_inside<Type>(from, part, std::ldexp(1.0F, power), end, range.limit, to)) {
      continue;
    }
    const Cut cut = quantize_cut<Type>(from, part, power, end, range.limit, to);
    total.saturated += cut.saturated;
    total.nonfinite += cut.nonfinite;
  }
  return total;
}

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
  switch (type) {
    case DataType::kFP32:
      return quantize_floats<Fp32>(source, count, exponent, range, halves);
    case DataType::kFP16:
      return quantize_floats<Fp16>(source, count, exponent, range, halves);
    case DataType::kBF16:
      return quantize_floats<Bf16>(source, count, exponent, range, halves);
    case DataType::kINT32:
    case DataType::kBYTES:
      break;
  }
  return {};  // the callers take floats only
}

CATCHMENT_FOR_EACH_PROCESSOR
std::uint32_t dequantize_packed(const std::uint8_t* halves, std::size_t count, int exponent,
                                HalfRange range, DataType type, std::uint8_t* target) {
  const float scale = std::ldexp(1.0F, exponent + range.headroom - kHalfBits);
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
