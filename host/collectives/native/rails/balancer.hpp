// Which rail carries which elements of an operation (docs/explanation/rails.md, "The split").
//
// Pure and in integers: all ranks that ask with the same numbers get the same answer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace catchment::host::rails {

inline constexpr std::uint32_t kMostRails = 8;
// Lanes of a vector are a power of two up to this, so that a split never cuts a vector in two, and
// each vector keeps the exponent that it has on one rail.
inline constexpr std::uint64_t kGranule = 4096;
// A slice of the policy kSlices.
inline constexpr std::uint64_t kSliceElements = 16 * 1024;
// The paper's threshold: a rail that is more than so many times slower than the fastest stays out.
inline constexpr std::uint64_t kMostRatio = 5;
inline constexpr std::uint64_t kWireBytes = 4;  // of an element
// What is tried though it is not the best takes at most so many times as long.
inline constexpr std::uint64_t kMostTried = 2;

enum class Policy : std::uint8_t {
  kWaterfill = 0,  // all rails of the best set end together
  kPaper = 1,      // Nezha, equations 3 to 5 and 8
  kFixed = 2,      // by the rails' nominal rates
  kSlices = 3,     // slices dealt in turn, as MPTCP does
  kSingle = 4,     // the rail that is best alone
};

struct RailCost {
  std::uint32_t start_ns = 0;      // before the first byte arrives
  std::uint32_t bytes_per_ms = 0;  // of the wire, at which an all-reduce runs; 0: not to be used
  std::uint32_t nominal = 0;       // what the topology says, in any unit that the rails share
  // While other rails carry the other parts; without a rate: as alone.
  std::uint32_t beside_start_ns = 0;
  std::uint32_t beside_bytes_per_ms = 0;
};

struct Share {
  std::uint32_t rail = 0;
  std::uint64_t first = 0;  // elements
  std::uint64_t elements = 0;

  friend bool operator==(const Share&, const Share&) = default;
};

// When `bytes` split over the rails in `set` (bits) are there, in ns; 0 where a rail of the set
// would begin later than that.
std::uint64_t finish_ns(std::span<const RailCost> rails, std::uint32_t set, std::uint64_t bytes);

// The shares of `elements`, in the order of elements; no share is empty.  `together_ns`: what
// using k rails at once costs besides, at k - 1.
// At least one rail must be usable, and `rails` and `together_ns` of equal length.
std::vector<Share> split(std::span<const RailCost> rails,
                         std::span<const std::uint32_t> together_ns, Policy policy,
                         std::uint64_t elements);

// The shares of an operation that tries what is not the best, the `turn`th of its size; none where
// there is nothing to try.  In turn: each rail alone and the best set of several, as far as they
// are not what `policy` uses and take no more than kMostTried times as long as the best; then
// `sample` elements (0: none) over an idle rail, beside the others.
std::vector<Share> tried(std::span<const RailCost> rails,
                         std::span<const std::uint32_t> together_ns, Policy policy,
                         std::uint64_t elements, std::uint64_t sample, std::uint64_t turn);

}  // namespace catchment::host::rails
