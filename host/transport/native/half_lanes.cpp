#include "half_lanes.hpp"

#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace catchment::host {

#if defined(__x86_64__)
namespace {

constexpr std::size_t kLanes = 8;

[[gnu::target("avx2,f16c")]] void convert(const std::uint8_t* lanes, std::size_t count, float scale,
                                          std::uint8_t* target, std::uint32_t& most) {
  const __m256i swap = _mm256_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2,
                                        1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
  const __m256i low = _mm256_set1_epi32(0xff);
  const __m256i half = _mm256_set1_epi32(0x80);
  const __m256i zero = _mm256_setzero_si256();
  const __m256i sign = _mm256_set1_epi32(static_cast<int>(0x8000'0000U));
  const __m256 factor = _mm256_set1_ps(scale);
  __m256i largest = zero;
  for (std::size_t i = 0; i < count; i += kLanes) {
    const auto* const from = reinterpret_cast<const __m256i*>(lanes + i * 4);
    const __m256i lane = _mm256_shuffle_epi8(_mm256_loadu_si256(from), swap);
    const __m256i magnitude = _mm256_abs_epi32(lane);
    largest = _mm256_max_epu32(largest, magnitude);
    // From 2^24 on, the lower byte becomes one sticky bit, so that nothing is rounded twice.
    const __m256i none = _mm256_cmpeq_epi32(_mm256_and_si256(magnitude, low), zero);
    const __m256i sticky =
        _mm256_or_si256(_mm256_andnot_si256(low, magnitude), _mm256_andnot_si256(none, half));
    const __m256i small = _mm256_cmpeq_epi32(_mm256_srli_epi32(magnitude, 24), zero);
    const __m256i exact = _mm256_blendv_epi8(sticky, magnitude, small);
    const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(exact), factor);
    const __m256 signed_one =
        _mm256_or_ps(scaled, _mm256_castsi256_ps(_mm256_and_si256(lane, sign)));
    const __m128i halves =
        _mm256_cvtps_ph(signed_one, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i * 2), halves);
  }
  alignas(32) std::uint32_t each[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(each), largest);
  for (const std::uint32_t one : each) most = one > most ? one : most;
}

}  // namespace

std::size_t lanes_to_fp16(const std::uint8_t* lanes, std::size_t count, int power,
                          std::uint8_t* target, std::uint32_t& most) {
  static const bool able = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  const std::size_t whole = able ? count / kLanes * kLanes : 0;
  const auto scale = std::bit_cast<float>(static_cast<std::uint32_t>(power + 127) << 23);
  if (whole != 0) convert(lanes, whole, scale, target, most);
  return whole;
}

#else

std::size_t lanes_to_fp16(const std::uint8_t*, std::size_t, int, std::uint8_t*, std::uint32_t&) {
  return 0;
}

#endif

}  // namespace catchment::host
