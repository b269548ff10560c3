#include "entity_reader.hpp"

#include "profile_entities.hpp"
#include "replication_entities.hpp"
#include "state_entities.hpp"
#include "table_entities.hpp"

namespace catchment::server {

void read_entity(const p4::v1::Entity& request, const Target& target, EntitySink& sink) {
  switch (request.entity_case()) {
    case p4::v1::Entity::kTableEntry:
      return read_table_entries(request.table_entry(), target, sink);
    case p4::v1::Entity::kDirectCounterEntry:
      return read_direct_counters(request.direct_counter_entry(), target, sink);
    case p4::v1::Entity::kDirectMeterEntry:
      return read_direct_meters(request.direct_meter_entry(), target, sink);
    case p4::v1::Entity::kActionProfileMember:
      return read_members(request.action_profile_member(), target, sink);
    case p4::v1::Entity::kActionProfileGroup:
      return read_groups(request.action_profile_group(), target, sink);
    case p4::v1::Entity::kPacketReplicationEngineEntry:
      return read_replication(request.packet_replication_engine_entry(), target, sink);
    case p4::v1::Entity::kCounterEntry:
      return read_counters(request.counter_entry(), target, sink);
    case p4::v1::Entity::kMeterEntry:
      return read_meters(request.meter_entry(), target, sink);
    case p4::v1::Entity::kRegisterEntry:
      return read_registers(request.register_entry(), target, sink);
    case p4::v1::Entity::kValueSetEntry:
      return read_value_sets(request.value_set_entry(), target, sink);
    case p4::v1::Entity::kDigestEntry:
      return read_digests(request.digest_entry(), target, sink);
    case p4::v1::Entity::kExternEntry:
      return;  // there are none
    case p4::v1::Entity::ENTITY_NOT_SET:
      break;
  }
  throw invalid_argument("the read request has an entity of no kind; name the kind to read");
}

}  // namespace catchment::server
