// Action profiles: members and groups.
#pragma once

#include "entity_sink.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "target.hpp"

namespace catchment::server {

// All throw RpcError when the request is refused.
void write_member(p4::v1::Update::Type type, const p4::v1::ActionProfileMember& message,
                  Target& target);
void write_group(p4::v1::Update::Type type, const p4::v1::ActionProfileGroup& message,
                 Target& target);
void read_members(const p4::v1::ActionProfileMember& request, const Target& target,
                  EntitySink& sink);
void read_groups(const p4::v1::ActionProfileGroup& request, const Target& target, EntitySink& sink);

}  // namespace catchment::server
