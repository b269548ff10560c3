#include "fabric.hpp"

#include <algorithm>

namespace catchment::performance {

std::uint32_t Fabric::add_line(world::LineTiming timing, std::size_t queue_bytes) {
  lines_.emplace_back(world.seed(), world.add_line(), timing);
  lines_.back().queue_bytes = queue_bytes;
  counts_.emplace_back();
  return static_cast<std::uint32_t>(lines_.size() - 1);
}

bool Fabric::clear() const {
  return std::all_of(lines_.begin(), lines_.end(),
                     [](const world::Line& line) { return line.clear(); });
}

void Fabric::repeat(const std::vector<world::LineCounts>& lines,
                    const std::vector<TypeCounts>& types, std::uint64_t times, Picos by) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    lines_[i].repeat(lines[i], times, by);
    for (std::size_t type = 0; type < kTypes; ++type) {
      TypeCounts& now = counts_[i];
      now.frames[type] += times * (now.frames[type] - types[i].frames[type]);
      now.resent[type] += times * (now.resent[type] - types[i].resent[type]);
    }
  }
}

}  // namespace catchment::performance
