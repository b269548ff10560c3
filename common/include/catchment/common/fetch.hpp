// Asks for memory before it is needed, where it lies in another processor's cache or in none: what
// a processor foresees by itself ends at each page's end.
//
// All of it is inlined, and so must be what does nothing else: GCC takes a call of a function that
// only fetches for one that does nothing.
#pragma once

#include <cstddef>

#include "catchment/common/cache_line.hpp"

namespace catchment {

/// Asks for bytes that will be read.
[[gnu::always_inline]] inline void fetch(const void* first, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kCacheLine) {
    __builtin_prefetch(static_cast<const char*>(first) + at);
  }
}

/// Asks for bytes that will be changed.
[[gnu::always_inline]] inline void fetch_to_change(const void* first, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kCacheLine) {
    __builtin_prefetch(static_cast<const char*>(first) + at, 1);
  }
}

}  // namespace catchment
