// What the writer of one request may do.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "role_access.hpp"
#include "rpc_error.hpp"

namespace catchment::server {

// The access of the writer's role, less what other roles have for themselves.
class Permission {
 public:
  // `others`: of the other roles that have a primary. The default role is not bound by them.
  Permission(std::string role, RoleAccess own, std::vector<RoleAccess> others)
      : role_(std::move(role)), own_(std::move(own)), others_(std::move(others)) {}

  // Throws RpcError(PERMISSION_DENIED) unless the role may write the entity.
  void check(const p4::v1::Entity& entity) const {
    if (role_.empty()) {
      return;
    }
    const std::uint32_t object = object_of(entity);
    if (!own_.may_write(object)) {
      throw permission_denied("role '" + role_ + "' may not write " +
                              (object == 0 ? "multicast groups and clone sessions"
                                           : "object " + std::to_string(object)) +
                              ": its role.config does not name it");
    }
    for (const RoleAccess& other : others_) {
      if (other.holds_exclusively(object)) {
        throw permission_denied("object " + std::to_string(object) +
                                " belongs to another role alone (exclusive_p4_ids)");
      }
    }
  }

  // Throws RpcError(PERMISSION_DENIED) unless the role may replace the pipeline.
  void check_pipeline() const {
    if (!own_.may_set_pipeline()) {
      throw permission_denied("role '" + role_ +
                              "' may not set the pipeline: its role.config does not say "
                              "can_push_pipeline");
    }
  }

 private:
  std::string role_;
  RoleAccess own_;
  std::vector<RoleAccess> others_;
};

}  // namespace catchment::server
