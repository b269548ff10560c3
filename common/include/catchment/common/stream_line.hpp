// A store of one cache line past the caches, for another processor to read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "catchment/common/cache_line.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace catchment {

#if defined(__x86_64__)

inline constexpr bool kStreamsLines = true;

/// Copies a line to the beginning of one.
inline void stream_line(std::uint8_t* to, const std::uint8_t* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#else
  for (std::size_t at = 0; at < kCacheLine; at += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
#endif
}

/// What was streamed before is visible before what is stored after.
inline void end_of_stream() { _mm_sfence(); }

#else

inline constexpr bool kStreamsLines = false;

inline void stream_line(std::uint8_t*, const std::uint8_t*) {}
inline void end_of_stream() {}

#endif

}  // namespace catchment
