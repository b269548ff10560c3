// What the clients of a role may do.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "p4/v1/p4runtime.pb.h"

namespace catchment::server {

// Of the default role: everything. Of another role: what its `role.config` says (a
// stratum.P4RoleConfig), or, without one, everything but a new pipeline.
class RoleAccess {
 public:
  // Throws RpcError(INVALID_ARGUMENT) for a config that is of another type, cannot be obeyed, or
  // belongs to the default role.
  static RoleAccess from(const p4::v1::Role& role);

  bool may_write(std::uint32_t object) const {
    return all_objects_ || exclusive_.contains(object) || shared_.contains(object);
  }
  bool may_set_pipeline() const { return may_set_pipeline_; }
  bool receives_packets() const { return receives_packets_; }
  bool holds_exclusively(std::uint32_t object) const { return exclusive_.contains(object); }

  // Returns an object that one of the two has for itself and the other may write, too; 0: none.
  std::uint32_t conflict(const RoleAccess& other) const;

 private:
  bool all_objects_ = true;
  bool may_set_pipeline_ = true;
  bool receives_packets_ = true;
  std::set<std::uint32_t> exclusive_;  // ids of the P4Info
  std::set<std::uint32_t> shared_;
};

// The id in the P4Info of what an entity belongs to (a direct counter: its table); 0 for multicast
// groups and clone sessions, which have none.
std::uint32_t object_of(const p4::v1::Entity& entity);

}  // namespace catchment::server
