// Answers one request of a Read, whatever kind of entity it is about.
#pragma once

#include "entity_sink.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "target.hpp"

namespace catchment::server {

// Adds every entity that the request selects. Throws RpcError when the request is refused.
void read_entity(const p4::v1::Entity& request, const Target& target, EntitySink& sink);

}  // namespace catchment::server
