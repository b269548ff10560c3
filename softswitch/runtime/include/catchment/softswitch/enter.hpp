// For a peer of a shared-memory port that can run the switch's program itself.
#pragma once

#include "catchment/shm/insider.hpp"

namespace catchment::softswitch {

/// Takes up the switch's invitation: maps its data plane. The program is opened with the first
/// frame. Throws shm::ShmError: this process cannot.
shm::Entered enter(shm::Invitation invitation);

}  // namespace catchment::softswitch
