// The packet replication engine: multicast groups and clone sessions.
#pragma once

#include "entity_sink.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "target.hpp"

namespace catchment::server {

// Both throw RpcError when the request is refused.
void write_replication(p4::v1::Update::Type type,
                       const p4::v1::PacketReplicationEngineEntry& message, Target& target);
void read_replication(const p4::v1::PacketReplicationEngineEntry& request, const Target& target,
                      EntitySink& sink);

}  // namespace catchment::server
