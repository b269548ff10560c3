// The lines of a cluster, and the clock that frames on them move by.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "happening.hpp"
#include "sim/world/native/line.hpp"

namespace catchment::performance {

inline constexpr std::size_t kTypes = 8;

// What was put on a line, lost or not, by packet type.
struct TypeCounts {
  std::array<std::uint64_t, kTypes> frames{};
  std::array<std::uint64_t, kTypes> resent{};
};

// A way out: the line, and what a frame on it happens to.
struct Outlet {
  std::uint32_t line = 0;
  What what = What::kAtSwitch;
  std::uint32_t target = 0;
};

class Fabric {
 public:
  explicit Fabric(std::uint64_t seed) : world(seed) {}

  World world;

  // queue_bytes: what may wait for the line; more is dropped.
  std::uint32_t add_line(world::LineTiming timing, std::size_t queue_bytes);
  [[nodiscard]] world::Line& line(std::uint32_t which) { return lines_[which]; }
  [[nodiscard]] const std::vector<world::Line>& lines() const { return lines_; }
  [[nodiscard]] const TypeCounts& counts(std::uint32_t which) const { return counts_[which]; }

  [[nodiscard]] const std::vector<TypeCounts>& all_counts() const { return counts_; }

  // Whether nothing happens to frames on any line.
  [[nodiscard]] bool clear() const;
  // What happened on clear lines since these counts happens `times` more, and takes `by`.
  void repeat(const std::vector<world::LineCounts>& lines, const std::vector<TypeCounts>& types,
              std::uint64_t times, Picos by);

  // Puts a frame of so many bytes (without FCS) behind those before it, no earlier than `ready`.
  void send(const Outlet& out, const Frame& frame, std::size_t bytes, Picos ready) {
    world::Line& line = lines_[out.line];
    if (!line.clear()) return send_faulty(out, frame, bytes, ready);
    const Picos at = line.send_clear(bytes, ready);
    if (at == world::kForever) return;
    count(out.line, frame);
    world.schedule(line.number(), at, {out.what, out.target, frame});
  }

 private:
  void send_faulty(const Outlet& out, const Frame& frame, std::size_t bytes, Picos ready);
  void count(std::uint32_t line, const Frame& frame) {
    TypeCounts& counts = counts_[line];
    const auto type = static_cast<std::uint8_t>(frame.type);
    ++counts.frames[type];
    if (frame.type != wire::PacketType::kHB && wire::has(frame.flags, wire::Flag::kRETX)) {
      ++counts.resent[type];
    }
  }

  std::vector<world::Line> lines_;
  std::vector<TypeCounts> counts_;
};

}  // namespace catchment::performance
