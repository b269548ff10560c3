// The float types as they lie in memory: their fp32 bits, which hold each exactly, and the nearest
// of an fp32 number.  Loops over these become vector code.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

// A function and what it inlines, compiled for each generation of processors; the loader chooses.
// None of them fuses or reorders an operation, so the results are the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CATCHMENT_FOR_EACH_PROCESSOR \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define CATCHMENT_FOR_EACH_PROCESSOR
#endif
#define CATCHMENT_INLINE [[gnu::always_inline]] inline

namespace catchment::host {

inline constexpr std::uint32_t kExponentBits = 0x7f80'0000U;

template <typename Word>
CATCHMENT_INLINE Word load(const std::uint8_t* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

template <typename Word>
CATCHMENT_INLINE void store(std::uint8_t* to, Word word) {
  std::memcpy(to, &word, sizeof word);
}

struct Fp32 {
  using Word = std::uint32_t;
  static constexpr Word kMagnitude = 0x7fff'ffffU;
  static constexpr Word kInfinity = 0x7f80'0000U;
  static constexpr int kSignificandBits = 23;
  static constexpr int kBias = 127;
  CATCHMENT_INLINE static std::uint32_t widen(Word word) { return word; }
  CATCHMENT_INLINE static Word narrow(float value) { return std::bit_cast<std::uint32_t>(value); }
};

struct Bf16 {
  using Word = std::uint16_t;
  static constexpr Word kMagnitude = 0x7fffU;
  static constexpr Word kInfinity = 0x7f80U;
  static constexpr int kSignificandBits = 7;
  static constexpr int kBias = 127;
  CATCHMENT_INLINE static std::uint32_t widen(Word word) {
    return static_cast<std::uint32_t>(word) << 16;
  }
  // Half even on the lower 16 bits; a carry into the exponent is right, up to infinity.
  CATCHMENT_INLINE static Word narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<Word>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
  }
};

struct Fp16 {
  using Word = std::uint16_t;
  static constexpr Word kMagnitude = 0x7fffU;
  static constexpr Word kInfinity = 0x7c00U;
  static constexpr int kSignificandBits = 10;
  static constexpr int kBias = 15;
  CATCHMENT_INLINE static std::uint32_t widen(Word word) {
    const std::uint32_t magnitude = (word & 0x7fffU) << 13;
    // The exponent moves by 112; the multiplication also normalizes denormals.
    const float value = std::bit_cast<float>(magnitude) * 0x1p112F;
    const std::uint32_t special = (word & 0x7c00U) == 0x7c00U ? kExponentBits : 0U;
    return std::bit_cast<std::uint32_t>(value) | special |
           (static_cast<std::uint32_t>(word & 0x8000U) << 16);
  }
  CATCHMENT_INLINE static Word narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fff'ffffU;
    const std::uint32_t normal =
        (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
    // Adding 0.5 leaves a multiple of 2^-24, rounded half even by the addition.
    const std::uint32_t denormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
        std::bit_cast<std::uint32_t>(0.5F);
    std::uint32_t half = magnitude < 0x3880'0000U ? denormal : normal;  // 2^-14
    half = magnitude >= 0x477f'f000U ? 0x7c00U : half;                  // 65520 rounds to infinity
    return static_cast<Word>(half | (bits >> 31 << 15));
  }
};

}  // namespace catchment::host
