#include "role_access.hpp"

#include <algorithm>

#include "catchment/wire/generated/role_config.pb.h"
#include "rpc_error.hpp"
#include "unknown_fields.hpp"

namespace catchment::server {

RoleAccess RoleAccess::from(const p4::v1::Role& role) {
  RoleAccess access;
  access.may_set_pipeline_ = role.name().empty();
  if (!role.has_config()) {
    return access;
  }
  if (role.name().empty()) {
    throw invalid_argument("role.config: the default role has access to everything; name a role");
  }
  stratum::P4RoleConfig config;
  if (!role.config().Is<stratum::P4RoleConfig>() || !role.config().UnpackTo(&config)) {
    throw invalid_argument("role.config is no stratum.P4RoleConfig but '" +
                           role.config().type_url() + "'");
  }
  try {
    refuse_unknown_fields(config);
  } catch (const RpcError& error) {
    throw invalid_argument(std::string("role.config: ") + error.what());
  }
  if (config.has_packet_in_filter()) {
    throw invalid_argument(
        "role.config: packet_in_filter is not supported; leave it out, and choose among packet-ins "
        "in the client");
  }
  access.all_objects_ = false;
  access.may_set_pipeline_ = config.can_push_pipeline();
  access.receives_packets_ = config.receives_packet_ins();
  access.exclusive_ = {config.exclusive_p4_ids().begin(), config.exclusive_p4_ids().end()};
  access.shared_ = {config.shared_p4_ids().begin(), config.shared_p4_ids().end()};
  return access;
}

std::uint32_t RoleAccess::conflict(const RoleAccess& other) const {
  const auto claimed = [](const RoleAccess& one, const RoleAccess& two) -> std::uint32_t {
    const auto found = std::find_if(
        one.exclusive_.begin(), one.exclusive_.end(),
        [&](std::uint32_t id) { return two.exclusive_.contains(id) || two.shared_.contains(id); });
    return found == one.exclusive_.end() ? 0 : *found;
  };
  const std::uint32_t mine = claimed(*this, other);
  return mine != 0 ? mine : claimed(other, *this);
}

std::uint32_t object_of(const p4::v1::Entity& entity) {
  switch (entity.entity_case()) {
    case p4::v1::Entity::kTableEntry:
      return entity.table_entry().table_id();
    case p4::v1::Entity::kDirectCounterEntry:
      return entity.direct_counter_entry().table_entry().table_id();
    case p4::v1::Entity::kDirectMeterEntry:
      return entity.direct_meter_entry().table_entry().table_id();
    case p4::v1::Entity::kActionProfileMember:
      return entity.action_profile_member().action_profile_id();
    case p4::v1::Entity::kActionProfileGroup:
      return entity.action_profile_group().action_profile_id();
    case p4::v1::Entity::kCounterEntry:
      return entity.counter_entry().counter_id();
    case p4::v1::Entity::kMeterEntry:
      return entity.meter_entry().meter_id();
    case p4::v1::Entity::kRegisterEntry:
      return entity.register_entry().register_id();
    case p4::v1::Entity::kValueSetEntry:
      return entity.value_set_entry().value_set_id();
    case p4::v1::Entity::kDigestEntry:
      return entity.digest_entry().digest_id();
    default:
      return 0;
  }
}

}  // namespace catchment::server
