// What each rank says that its first vectors need, so that all agree about their scales: behind the
// signatures, and in vectors of their own where there is no room.  Every rank writes into lanes of
// its own and zeros elsewhere, two vectors in a lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "payload.hpp"
#include "scale.hpp"

namespace catchment::host {

// What a rank says of a vector: what its own values need, and the E of which it has guessed that
// all ranks agree on it (its own, without a guess).
struct Need {
  Scale scale;
  std::int8_t guess = 0;
};

// The number of lanes that all ranks' needs of `vectors` vectors take.
std::uint32_t lanes_of_needs(std::uint32_t vectors, const Layout& layout);
// Vectors that those take for which there is no room behind the signatures.
std::uint32_t tables_of(std::uint32_t vectors, const Layout& layout);

// Which of `lanes` lanes of needs lie behind the signatures (part 0) or in table `part - 1`, and
// the lane of the payload at which they begin.
struct NeedsPart {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t at = 0;
};
NeedsPart part_of_needs(std::size_t lanes, std::uint32_t part, const Layout& layout);

// Returns lane `lane` of this rank's needs.
std::uint32_t encode(std::span<const Need> needs, std::uint32_t lane);

// The scales of `vectors` vectors that all ranks' lanes, `lanes_of_needs` of them, agree on;
// `grid`: scales on the grid.
std::vector<Scale> agreed_scales(std::span<const std::uint32_t> lanes, std::uint32_t vectors,
                                 const Layout& layout, bool grid);
// Whether all ranks have guessed these scales, of their lanes.
bool all_guessed(std::span<const std::uint32_t> lanes, std::span<const Scale> scales,
                 const Layout& layout);

}  // namespace catchment::host
