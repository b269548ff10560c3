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

// What a rank says of a vector.
struct Said {
  std::int8_t exponent;
  std::int8_t guess;  // or kMark
};

template <typename See>
void for_each_said(std::span<const std::uint32_t> lanes, std::uint32_t vectors,
                   const Layout& layout, See see) {
  const auto one = [](std::uint32_t word) {
    return Said{static_cast<std::int8_t>(word >> 8), static_cast<std::int8_t>(word)};
  };
  auto lane = lanes.begin();
  for (std::uint32_t rank = 0; rank < layout.ranks; ++rank) {
    for (std::uint32_t vector = 0; vector < vectors; vector += kInLane, ++lane) {
      see(vector, one(*lane >> 16));
      if (vector + 1 < vectors) see(vector + 1, one(*lane));
    }
  }
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

std::vector<Scale> agreed_scales(std::span<const std::uint32_t> lanes, std::uint32_t vectors,
                                 const Layout& layout, bool grid) {
  std::vector<Scale> scales(vectors);
  for_each_said(lanes, vectors, layout, [&](std::uint32_t vector, Said said) {
    Scale& scale = scales[vector];
    scale.exponent = std::max(scale.exponent, said.exponent);
    scale.marked |= said.guess == kMark;
  });
  if (grid) std::ranges::transform(scales, scales.begin(), on_grid);
  return scales;
}

bool all_guessed(std::span<const std::uint32_t> lanes, std::span<const Scale> scales,
                 const Layout& layout) {
  bool all = true;
  const auto vectors = static_cast<std::uint32_t>(scales.size());
  for_each_said(lanes, vectors, layout, [&](std::uint32_t vector, Said said) {
    const Scale scale = scales[vector];
    all = all && !scale.marked && said.guess == scale.exponent;
  });
  return all;
}

}  // namespace catchment::host
