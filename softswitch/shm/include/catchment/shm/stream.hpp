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

#include "catchment/common/stream_line.hpp"
#include "catchment/shm/layout.hpp"

namespace catchment::shm {

#if defined(__x86_64__)

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

inline std::uint64_t ticks() { return __rdtsc(); }

#else

inline void stream(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
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
    copy(to, frame, begin(frame.size()));
    return end(frame.size());
  }
  /// Begins a frame of about so many bytes, which is written in place of being copied: whether past
  /// the caches.
  bool begin(std::size_t bytes) {
    counts_ = bytes >= kLeast;
    const std::uint32_t place = count_ % kPeriod;
    // The first of each way fills and drains what the other has left behind.
    streaming_ = counts_ && (place < kTimed ? place < kTimed / 2 : streams_);
    start_ = counts_ && place < kTimed ? ticks() : 0;
    return streaming_;
  }
  /// Ends the frame, of so many bytes, not 0. True: not visible before end_of_stream().
  bool end(std::size_t bytes) {
    if (!counts_) {
      return false;
    }
    const std::uint32_t place = count_++ % kPeriod;
    if (place >= kTimed) {
      return streaming_;
    }
    const std::uint64_t took = (ticks() - start_) * kLeast / bytes;
    if (place % (kTimed / 2) != 0) {
      std::uint64_t& best = streaming_ ? streamed_ : plain_;
      best = std::min(best, took);
    }
    if (place + 1 == kTimed) {
      // What is streamed has to come from farther away.
      streams_ = plain_ > streamed_ + streamed_ / 2;
      streamed_ = plain_ = ~std::uint64_t{0};
    }
    return streaming_;
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
  // Of the frame that was begun.
  bool counts_ = false;
  bool streaming_ = false;
  std::uint64_t start_ = 0;  // if it is timed
  std::uint64_t streamed_ = ~std::uint64_t{0};
  std::uint64_t plain_ = ~std::uint64_t{0};
};

}  // namespace catchment::shm
