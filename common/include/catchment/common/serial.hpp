// Serial arithmetic on 32-bit sequence numbers (docs/explanation/protocol.md).
#pragma once

#include <cstdint>

namespace catchment {

using Seq = std::uint32_t;

/// How far `to` lies ahead of `from`, modulo 2^32.
constexpr std::uint32_t distance(Seq from, Seq to) { return to - from; }

/// True when a lies 1 .. 2^31 - 1 ahead of b.
constexpr bool newer(Seq a, Seq b) {
  const std::uint32_t ahead = distance(b, a);
  return ahead != 0 && ahead < 0x8000'0000U;
}

constexpr Seq later(Seq a, Seq b) { return newer(a, b) ? a : b; }
constexpr Seq earlier(Seq a, Seq b) { return newer(a, b) ? b : a; }

}  // namespace catchment
