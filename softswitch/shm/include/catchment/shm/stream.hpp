// Copies for another processor to read. A plain store to a line that the other one has read waits
// until that one has given it up: next to nothing when its cache has lost the line since, and more
// than ten times the copy itself when it has not and is far away. A store past the caches costs the
// same always. So both are timed now and then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "catchment/shm/layout.hpp"

namespace catchment::shm {

#if defined(__x86_64__)

/// One line.
inline void stream_line(std::uint8_t* to, const std::uint8_t* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#else
  for (std::size_t at = 0; at < kLine; at += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
#endif
}

/// Copies `bytes` to the beginning of a line, and fills the last line up with zeros.
inline void stream(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  const std::size_t whole = bytes / kLine * kLine;
  for (std::size_t at = 0; at < whole; at += kLine) {
    stream_line(to + at, from + at);
  }
  if (whole != bytes) {
    alignas(kLine) std::uint8_t last[kLine] = {};
    std::memcpy(last, from + whole, bytes - whole);
    stream_line(to + whole, last);
  }
}

/// What was streamed before is visible before what is stored after.
inline void end_of_stream() { _mm_sfence(); }
inline std::uint64_t ticks() { return __rdtsc(); }

#else

inline void stream(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
inline void end_of_stream() {}
inline std::uint64_t ticks() { return 0; }

#endif

/// A frame in two pieces, the first of which may be empty.
struct Pieces {
  std::span<const std::uint8_t> head;  // whole lines
  std::span<const std::uint8_t> body;

  [[nodiscard]] std::size_t size() const { return head.size() + body.size(); }
};

/// The cheaper way to copy frames into a ring.
class CopyAcross {
 public:
  /// Copies a frame to the beginning of a line, whose last line may be filled up. True: not visible
  /// before end_of_stream().
  bool put(std::uint8_t* to, const Pieces& frame) {
    const std::size_t bytes = frame.size();
    if (bytes < kLeast) {
      return copy(to, frame, false);
    }
    const std::uint32_t place = count_++ % kPeriod;
    if (place >= kTimed) {
      return copy(to, frame, streams_);
    }
    // The first of each way fills and drains what the other has left behind.
    const bool streams = place < kTimed / 2;
    const std::uint64_t start = ticks();
    copy(to, frame, streams);
    const std::uint64_t took = (ticks() - start) * kLeast / bytes;
    if (place % (kTimed / 2) != 0) {
      std::uint64_t& best = streams ? streamed_ : plain_;
      best = std::min(best, took);
    }
    if (place + 1 == kTimed) {
      // What is streamed has to come from farther away.
      streams_ = plain_ > streamed_ + streamed_ / 2;
      streamed_ = plain_ = ~std::uint64_t{0};
    }
    return streams;
  }

 private:
  /// Shorter ones are few lines, soon needed.
  static constexpr std::size_t kLeast = 1024;
  static constexpr std::uint32_t kTimed = 8;  // of each
  static constexpr std::uint32_t kPeriod = 512;

  static bool copy(std::uint8_t* to, const Pieces& frame, bool streams) {
    for (const std::span<const std::uint8_t> piece : {frame.head, frame.body}) {
      if (streams) {
        stream(to, piece.data(), piece.size());
      } else {
        std::copy(piece.begin(), piece.end(), to);
      }
      to += piece.size();
    }
    return streams;
  }

  std::uint32_t count_ = 0;
  bool streams_ = false;
  std::uint64_t streamed_ = ~std::uint64_t{0};
  std::uint64_t plain_ = ~std::uint64_t{0};
};

}  // namespace catchment::shm
