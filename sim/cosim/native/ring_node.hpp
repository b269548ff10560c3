// A device of a ring (rtl/harness/ring_device.hpp) between the links to its two neighbours.
//
// A link is a line of the world in each direction. It takes a flit when the one before it is
// through; flits arrive in order, with the link's latency, some of them lost or damaged.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "register_port.hpp"
#include "rtl/harness/ring_device.hpp"
#include "sim/cosim/native/frame.hpp"
#include "sim/world/native/line.hpp"
#include "watch.hpp"

namespace catchment::cosim {

using Flit = std::array<std::uint32_t, rtl::RingDevice::kMostWords>;

// One direction of a link.
class FlitLine {
 public:
  FlitLine(std::uint64_t seed, std::uint32_t number, world::LineTiming timing)
      : line(seed, number, timing) {}

  world::Line line;

  [[nodiscard]] bool ready(Picos now) const { return line.free_at() < now + kClock; }
  void send(const Flit& flit, std::uint32_t bits, Picos now);
  // What has arrived by `now`, one flit a call; nullptr: nothing.
  const std::uint32_t* arrived(Picos now);

 private:
  struct Flying {
    Picos at;
    Flit flit;
  };

  std::deque<Flying> flying_;
  Flit last_{};
};

class RingNode {
 public:
  RingNode(const rtl::RingDevice& table, void* device)
      : registers({table.begin_write, table.begin_read, table.answer, table.give_up}, device),
        table_(table),
        device_(device) {}

  RegisterPort registers;

  // The link to the next device, and that to the one before: what leaves by it, what comes.
  void attach_next(FlitLine& out, FlitLine& in) { next_ = {&out, &in}; }
  void attach_before(FlitLine& out, FlitLine& in) { before_ = {&out, &in}; }
  // Clocks from `now` on.
  void run(Picos now, std::uint64_t clocks);
  // When its interrupt is raised.
  std::shared_ptr<Watch> watch();
  [[nodiscard]] std::size_t waiting() const { return watches_.size(); }

 private:
  struct Link {
    FlitLine* out = nullptr;
    FlitLine* in = nullptr;
  };

  const rtl::RingDevice& table_;
  void* device_;
  Link next_;
  Link before_;
  std::vector<std::shared_ptr<Watch>> watches_;
};

}  // namespace catchment::cosim
