#include "fabric.hpp"

namespace catchment::performance {

std::uint32_t Fabric::add_line(world::LineTiming timing, std::size_t queue_bytes) {
  lines_.emplace_back(world.seed(), world.add_line(), timing);
  lines_.back().queue_bytes = queue_bytes;
  counts_.emplace_back();
  return static_cast<std::uint32_t>(lines_.size() - 1);
}

}  // namespace catchment::performance
