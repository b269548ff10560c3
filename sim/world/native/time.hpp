// Time in a world.
#pragma once

#include <cstdint>
#include <limits>

namespace catchment::world {

using Picos = std::int64_t;

inline constexpr Picos kForever = std::numeric_limits<Picos>::max();

}  // namespace catchment::world
