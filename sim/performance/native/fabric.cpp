#include "fabric.hpp"

#include <algorithm>

namespace catchment::performance {

std::uint32_t Fabric::add_line(world::LineTiming timing, std::size_t queue_bytes) {
  lines_.emplace_back(world.seed(), world.add_line(), timing);
  lines_.back().limit_queue(queue_bytes);
  counts_.emplace_back();
  return static_cast<std::uint32_t>(lines_.size() - 1);
}

void Fabric::send_faulty(const Outlet& out, const Frame& frame, std::size_t bytes, Picos ready) {
  world::Line& line = lines_[out.line];
  const auto type = static_cast<std::uint8_t>(frame.type);
  const world::Transit transit = line.send(bytes, type, ready, ready);
  if (transit.dropped) return;
  count(out.line, frame);
  for (std::size_t i = 0; i < transit.copies; ++i) {
    if (transit.copy[i].damaged) continue;
    world.schedule(line.number(), transit.copy[i].last, {out.what, out.target, frame});
  }
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
