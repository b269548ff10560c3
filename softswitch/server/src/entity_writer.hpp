// Carries out one update of a Write request, whatever kind of entity it is about.
#pragma once

#include "p4/v1/p4runtime.pb.h"
#include "target.hpp"

namespace catchment::server {

// Throws RpcError when the update is refused; the switch is then as it was.
void write_entity(const p4::v1::Update& update, Target& target);

}  // namespace catchment::server
