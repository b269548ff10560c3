// What happens in a co-simulation: a frame has come in at a node, or a node's time has.
#pragma once

#include <cstdint>
#include <utility>

#include "frame.hpp"
#include "node.hpp"
#include "sim/world/native/world.hpp"

namespace catchment::cosim {

struct Happening {
  Node* node;
  std::uint32_t port;
  bool wakes;  // no frame: the node asked for it
  Arrival arrival;
};

using World = world::World<Happening>;

inline void carry_out(world::Event<Happening>&& event) {
  Happening& what = event.payload;
  if (what.wakes) {
    what.node->on_time(event.at);
  } else {
    what.node->on_frame(what.port, std::move(what.arrival));
  }
}

}  // namespace catchment::cosim
