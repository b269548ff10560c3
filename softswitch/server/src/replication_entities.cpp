#include "replication_entities.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bytestring.hpp"
#include "where.hpp"

namespace catchment::server {

namespace {

using p4::v1::Update;
using Replicas = google::protobuf::RepeatedPtrField<p4::v1::Replica>;
using PreEntry = p4::v1::PacketReplicationEngineEntry;

constexpr unsigned kPortBits = 9;                  // standard_metadata_t.egress_port
constexpr std::uint32_t kMaxInstance = 0xffff;     // standard_metadata_t.egress_rid
constexpr std::uint32_t kMaxMulticastId = 0xffff;  // standard_metadata_t.mcast_grp

std::vector<softswitch::Replica> decode_replicas(const Replicas& messages, const Where& where) {
  std::vector<softswitch::Replica> result;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const auto& message : messages) {
    softswitch::Replica replica;
    replica.instance = message.instance();
    if (message.port_kind_case() == p4::v1::Replica::PORT_KIND_NOT_SET) {
      throw invalid_argument(where.text() + ": a replica has no port");
    }
    replica.port = message.has_port()
                       ? static_cast<std::uint32_t>(to_uint64(message.port(), kPortBits, where))
                       : message.egress_port();
    if (replica.port >> kPortBits != 0) {
      throw invalid_argument(where.text() + ": port " + std::to_string(replica.port) +
                             " is above 511");
    }
    if (replica.instance > kMaxInstance) {
      throw invalid_argument(where.text() + ": instance " + std::to_string(replica.instance) +
                             " is above 65535");
    }
    if (!seen.emplace(replica.port, replica.instance).second) {
      throw invalid_argument(where.text() + ": port " + std::to_string(replica.port) +
                             " with instance " + std::to_string(replica.instance) +
                             " is there twice");
    }
    result.push_back(replica);
  }
  return result;
}

Target::PortForms forms_of(const Replicas& messages) {
  Target::PortForms forms;
  for (const auto& message : messages) {
    forms.push_back(message.has_port());
  }
  return forms;
}

void encode_replicas(const std::vector<softswitch::Replica>& replicas, Target::Replication kind,
                     std::uint32_t id, const Target& target, Replicas& result) {
  const auto forms = target.port_forms.find({kind, id});
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    auto& message = *result.Add();
    message.set_instance(replicas[i].instance);
    if (forms != target.port_forms.end() && i < forms->second.size() && forms->second[i]) {
      std::string bytes;
      bytes += static_cast<char>(replicas[i].port >> 8);
      bytes += static_cast<char>(replicas[i].port & 0xff);
      message.set_port(to_canonical(bytes));
    } else {
      message.set_egress_port(replicas[i].port);
    }
  }
}

template <class Value>
void apply(Update::Type type, const Value& value, const Replicas& replicas,
           Target::Replication kind, std::uint32_t id, Target& target) {
  auto& dataplane = target.dataplane();
  if (type == Update::DELETE) {
    check(dataplane.remove(value));
    target.port_forms.erase({kind, id});
    return;
  }
  check(type == Update::INSERT ? dataplane.insert(value) : dataplane.modify(value));
  target.port_forms[{kind, id}] = forms_of(replicas);
}

void write_multicast(Update::Type type, const p4::v1::MulticastGroupEntry& message,
                     Target& target) {
  const std::uint32_t id = message.multicast_group_id();
  const std::string name = std::to_string(id);
  const Where where{"multicast group", name};
  if (id == 0 || id > kMaxMulticastId) {
    throw invalid_argument(where.text() + ": its id is not in 1..65535");
  }
  softswitch::MulticastGroup group;
  group.group_id = id;
  if (type != Update::DELETE) {
    group.replicas = decode_replicas(message.replicas(), where);
    group.metadata = message.metadata();
  }
  apply(type, group, message.replicas(), Target::Replication::multicast, id, target);
}

void write_clone(Update::Type type, const p4::v1::CloneSessionEntry& message, Target& target) {
  const std::uint32_t id = message.session_id();
  const std::string name = std::to_string(id);
  const Where where{"clone session", name};
  if (id == 0) {
    throw invalid_argument(where.text() + ": its id must not be 0");
  }
  softswitch::CloneSession session;
  session.session_id = id;
  if (type != Update::DELETE) {
    if (message.packet_length_bytes() < 0) {
      throw invalid_argument(where.text() + ": packet_length_bytes is negative");
    }
    session.replicas = decode_replicas(message.replicas(), where);
    session.class_of_service = message.class_of_service();
    session.packet_length_bytes = message.packet_length_bytes();
  }
  apply(type, session, message.replicas(), Target::Replication::clone, id, target);
}

// A key that is not there selects nothing.
template <class Value>
std::vector<Value> select(softswitch::Result<std::vector<Value>> result) {
  if (!result.ok() && result.status().code() == softswitch::StatusCode::not_found) {
    return {};
  }
  return take(std::move(result));
}

}  // namespace

void write_replication(Update::Type type, const PreEntry& message, Target& target) {
  switch (message.type_case()) {
    case PreEntry::kMulticastGroupEntry:
      return write_multicast(type, message.multicast_group_entry(), target);
    case PreEntry::kCloneSessionEntry:
      return write_clone(type, message.clone_session_entry(), target);
    default:
      throw invalid_argument(
          "the replication engine entry is neither a multicast group nor a clone session");
  }
}

void read_replication(const PreEntry& request, const Target& target, EntitySink& sink) {
  if (request.type_case() == PreEntry::kMulticastGroupEntry) {
    softswitch::MulticastGroup filter;
    filter.group_id = request.multicast_group_entry().multicast_group_id();
    for (const auto& group : select(target.dataplane().read(filter))) {
      auto& message =
          *sink.add().mutable_packet_replication_engine_entry()->mutable_multicast_group_entry();
      message.set_multicast_group_id(group.group_id);
      message.set_metadata(group.metadata);
      encode_replicas(group.replicas, Target::Replication::multicast, group.group_id, target,
                      *message.mutable_replicas());
    }
    return;
  }
  if (request.type_case() != PreEntry::kCloneSessionEntry) {
    throw invalid_argument(
        "the replication engine entry is neither a multicast group nor a clone session");
  }
  softswitch::CloneSession filter;
  filter.session_id = request.clone_session_entry().session_id();
  for (const auto& session : select(target.dataplane().read(filter))) {
    auto& message =
        *sink.add().mutable_packet_replication_engine_entry()->mutable_clone_session_entry();
    message.set_session_id(session.session_id);
    message.set_class_of_service(session.class_of_service);
    message.set_packet_length_bytes(session.packet_length_bytes);
    encode_replicas(session.replicas, Target::Replication::clone, session.session_id, target,
                    *message.mutable_replicas());
  }
}

}  // namespace catchment::server
