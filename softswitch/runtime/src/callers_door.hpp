// What a port needs to let its peer run the program itself.
#pragma once

#include "gate.hpp"
#include "shared_state.hpp"
#include "state_memory.hpp"

namespace catchment::softswitch {

struct CallersDoor {
  StateMemory& memory;
  SharedState& state;
  Gate& gate;
};

}  // namespace catchment::softswitch
