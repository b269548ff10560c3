#include "vector_needs.hpp"

#include <algorithm>

namespace catchment::host {
namespace {

constexpr std::uint32_t kInLane = 2;
// This value in place of a guess says that the vector is marked. No vector needs this exponent.
constexpr std::int8_t kMark = -127;

constexpr std::uint32_t lanes_of_rank(std::uint32_t vectors) {
  return (vectors + kInLane - 1) / kInLane;
}

std::uint32_t encode(const Need& need) {
  const std::int8_t second = need.scale.marked ? kMark : need.guess;
  return static_cast<std::uint32_t>(static_cast<std::uint8_t>(need.scale.exponent)) << 8 |
         static_cast<std::uint8_t>(second);
}

}  // namespace

std::uint32_t lanes_of_needs(std::uint32_t vectors, const Layout& layout) {
  return lanes_of_rank(vectors) * layout.ranks;
}

std::uint32_t tables_of(std::uint32_t vectors, const Layout& layout) {
  const std::uint32_t lanes = lanes_of_needs(vectors, layout);
  const std::uint32_t room = riding(layout).lanes;
  return lanes <= room ? 0 : (lanes - room + layout.lanes - 1) / layout.lanes;
}

NeedsPart part_of_needs(std::size_t lanes, std::uint32_t part, const Layout& layout) {
  const std::size_t room = riding(layout).lanes;
  if (part == 0) return {0, std::min(lanes, room), layout.lanes - room};
  const std::size_t first = room + static_cast<std::size_t>(part - 1) * layout.lanes;
  return {first, std::min(lanes, first + layout.lanes), 0};
}

std::uint32_t encode(std::span<const Need> needs, std::uint32_t lane) {
  const std::size_t first = static_cast<std::size_t>(lane) * kInLane;
  const std::uint32_t second = first + 1 < needs.size() ? encode(needs[first + 1]) : 0;
  return encode(needs[first]) << 16 | second;
}

Agreement agreement_of(std::span<const std::uint32_t> lanes, std::uint32_t vectors,
                       const Layout& layout, bool grid) {
  Agreement agreement{.scales = std::vector<Scale>(vectors)};
  const std::uint32_t width = lanes_of_rank(vectors);
  const auto said = [&](std::uint32_t rank, std::uint32_t vector) {
    const std::uint32_t lane = lanes[rank * width + vector / kInLane];
    return vector % kInLane == 0 ? lane >> 16 : lane & 0xffffU;
  };
  for (std::uint32_t vector = 0; vector < vectors; ++vector) {
    Scale& scale = agreement.scales[vector];
    for (std::uint32_t rank = 0; rank < layout.ranks; ++rank) {
      const auto exponent = static_cast<std::int8_t>(said(rank, vector) >> 8);
      scale.exponent = std::max(scale.exponent, exponent);
      scale.marked |= static_cast<std::int8_t>(said(rank, vector) & 0xffU) == kMark;
    }
    if (grid) scale = on_grid(scale);
    for (std::uint32_t rank = 0; rank < layout.ranks && agreement.guessed; ++rank) {
      const auto guess = static_cast<std::int8_t>(said(rank, vector) & 0xffU);
      agreement.guessed = !scale.marked && guess == scale.exponent;
    }
  }
  return agreement;
}

}  // namespace catchment::host
