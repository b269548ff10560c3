// Where the bytes of an array lie whose ranks' parts are strided.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mixing.hpp"

namespace catchment::host {

// Rank r's part is `blocks` blocks of `block` bytes, block j at r * step + j * stride.  The bytes
// of an operation are counted rank by rank, block by block.
struct Spread {
  std::uint64_t step = 0;
  std::uint64_t block = 0;
  std::uint64_t blocks = 1;
  std::uint64_t stride = 0;

  // Ranks' parts of `part` bytes, one after the other.
  static constexpr Spread side_by_side(std::uint64_t part) { return {part, part, 1, part}; }

  constexpr std::uint64_t part() const { return block * blocks; }

  // Where a byte of the operation lies.
  constexpr std::uint64_t place(std::uint64_t at) const {
    const std::uint64_t in_part = at % part();
    return at / part() * step + in_part / block * stride + in_part % block;
  }

  // Calls `run(place, at, count)` for each run of bytes of [first, last) that lie together.
  template <typename Run>
  void for_each_run(std::uint64_t first, std::uint64_t last, Run&& run) const {
    while (first < last) {
      const std::uint64_t count = std::min(block - first % part() % block, last - first);
      run(place(first), first, count);
      first += count;
    }
  }

  // Words that ranks compare: equal for equal spreads, and hardly ever otherwise.
  constexpr std::uint32_t hash() const {
    std::uint64_t mixed = kHashed;
    for (const std::uint64_t word : {step, block, blocks, stride}) mixed = mixed_in(mixed, word);
    return folded(mixed);
  }
};

}  // namespace catchment::host
