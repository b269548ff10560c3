// What processors move between their caches at a time.
#pragma once

#include <cstddef>

namespace catchment {

/// Bytes of a cache line, on x86-64 and most of ARM; elsewhere a matter of speed, not of results.
inline constexpr std::size_t kCacheLine = 64;

}  // namespace catchment
