#include "entity_writer.hpp"

#include <string>

#include "profile_entities.hpp"
#include "replication_entities.hpp"
#include "state_entities.hpp"
#include "table_entities.hpp"

namespace catchment::server {

void write_entity(const p4::v1::Update& update, Target& target) {
  const auto type = update.type();
  const auto& entity = update.entity();
  if (type != p4::v1::Update::INSERT && type != p4::v1::Update::MODIFY &&
      type != p4::v1::Update::DELETE) {
    throw invalid_argument(
        (type == p4::v1::Update::UNSPECIFIED
             ? std::string("the type of the update is not set")
             : "the update is of type " + std::to_string(type) + ", which there is not") +
        ": INSERT, MODIFY or DELETE");
  }
  switch (entity.entity_case()) {
    case p4::v1::Entity::kTableEntry:
      return write_table_entry(type, entity.table_entry(), target);
    case p4::v1::Entity::kDirectCounterEntry:
      return write_direct_counter(type, entity.direct_counter_entry(), target);
    case p4::v1::Entity::kDirectMeterEntry:
      return write_direct_meter(type, entity.direct_meter_entry(), target);
    case p4::v1::Entity::kActionProfileMember:
      return write_member(type, entity.action_profile_member(), target);
    case p4::v1::Entity::kActionProfileGroup:
      return write_group(type, entity.action_profile_group(), target);
    case p4::v1::Entity::kPacketReplicationEngineEntry:
      return write_replication(type, entity.packet_replication_engine_entry(), target);
    case p4::v1::Entity::kCounterEntry:
      return write_counter(type, entity.counter_entry(), target);
    case p4::v1::Entity::kMeterEntry:
      return write_meter(type, entity.meter_entry(), target);
    case p4::v1::Entity::kRegisterEntry:
      return write_register(type, entity.register_entry(), target);
    case p4::v1::Entity::kValueSetEntry:
      return write_value_set(type, entity.value_set_entry(), target);
    case p4::v1::Entity::kDigestEntry:
      return write_digest(type, entity.digest_entry(), target);
    case p4::v1::Entity::kExternEntry:
      throw unimplemented("extern entries: v1model has no externs beyond those of P4Runtime");
    case p4::v1::Entity::ENTITY_NOT_SET:
      break;
  }
  throw invalid_argument("the update has no entity");
}

}  // namespace catchment::server
