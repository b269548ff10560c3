// A hash over words that ranks compare.
#pragma once

#include <cstdint>

namespace catchment::host {

inline constexpr std::uint64_t kHashed = 0xcbf29ce484222325ULL;  // where hashes begin

constexpr std::uint64_t mixed_in(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x100000001b3ULL;
  return hash ^ hash >> 29;
}

constexpr std::uint32_t folded(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace catchment::host
