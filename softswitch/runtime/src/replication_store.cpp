#include "replication_store.hpp"

#include <set>
#include <utility>

namespace catchment::softswitch {

namespace {

std::string name_of(const MulticastGroup& group) {
  return "multicast group " + std::to_string(group.group_id);
}

std::string name_of(const CloneSession& session) {
  return "clone session " + std::to_string(session.session_id);
}

Status check_replicas(const std::string& name, const std::vector<Replica>& replicas) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const Replica& replica : replicas) {
    if (replica.port >= rt::kPorts) {
      return {StatusCode::invalid_argument, name + ": port " + std::to_string(replica.port) +
                                                " is not below " + std::to_string(rt::kPorts)};
    }
    if (replica.instance > 0xFFFF) {
      return {StatusCode::invalid_argument,
              name + ": instance " + std::to_string(replica.instance) + " does not fit in 16 bits"};
    }
    if (!seen.emplace(replica.port, replica.instance).second) {
      return {StatusCode::invalid_argument, name + ": port " + std::to_string(replica.port) +
                                                " instance " + std::to_string(replica.instance) +
                                                " twice"};
    }
  }
  return {};
}

Status check(const MulticastGroup& group) {
  if (group.group_id == 0 || group.group_id >= rt::kGroups) {
    return {StatusCode::invalid_argument, name_of(group) + ": ids are 1 to 65535"};
  }
  return check_replicas(name_of(group), group.replicas);
}

Status check(const CloneSession& session) {
  if (session.session_id == 0 || session.session_id >= rt::kSessions) {
    return {StatusCode::invalid_argument, name_of(session) + ": ids are 1 to 32767"};
  }
  if (session.packet_length_bytes < 0) {
    return {StatusCode::invalid_argument, name_of(session) + ": the length is negative"};
  }
  return check_replicas(name_of(session), session.replicas);
}

template <class Entity>
Result<std::vector<Entity>> read_from(const auto& map, std::uint32_t id, const Entity& key) {
  std::vector<Entity> out;
  for (const auto& [number, stored] : map) {
    if (id == 0 || number == id) {
      out.push_back(stored.entity);
    }
  }
  if (id != 0 && out.empty()) {
    return Status(StatusCode::not_found, name_of(key) + " does not exist");
  }
  return out;
}

}  // namespace

template <class Entity>
Status ReplicationStore::insert_into(StoredById<Entity>& map, const Entity& entity,
                                     std::uint32_t id) {
  if (Status status = check(entity); !status.ok()) {
    return status;
  }
  const auto [stored, fresh] = map.try_emplace(id, entity, memory_);
  if (!fresh) {
    return {StatusCode::already_exists, name_of(entity) + " exists already"};
  }
  publish(stored->second);
  return {};
}

template <class Entity>
Status ReplicationStore::modify_in(StoredById<Entity>& map, const Entity& entity,
                                   std::uint32_t id) {
  if (Status status = check(entity); !status.ok()) {
    return status;
  }
  const auto found = map.find(id);
  if (found == map.end()) {
    return {StatusCode::not_found, name_of(entity) + " does not exist"};
  }
  Stored<Entity> fresh(entity, memory_);  // whatever needs memory
  std::swap(found->second.entity, fresh.entity);
  found->second.replicas.swap(fresh.replicas);
  publish(found->second);
  return {};
}

void ReplicationStore::publish(const Stored<MulticastGroup>& group) noexcept {
  engine_.groups[group.entity.group_id] = {group.replicas.data(),
                                           static_cast<std::uint32_t>(group.replicas.size())};
}

void ReplicationStore::publish(const Stored<CloneSession>& session) noexcept {
  engine_.sessions[session.entity.session_id] = {
      {session.replicas.data(), static_cast<std::uint32_t>(session.replicas.size())},
      static_cast<std::uint32_t>(session.entity.packet_length_bytes),
      true};
}

Status ReplicationStore::insert(const MulticastGroup& group) {
  return insert_into(groups_, group, group.group_id);
}

Status ReplicationStore::modify(const MulticastGroup& group) {
  return modify_in(groups_, group, group.group_id);
}

Status ReplicationStore::remove(const MulticastGroup& key) {
  if (groups_.erase(key.group_id) == 0) {
    return {StatusCode::not_found, name_of(key) + " does not exist"};
  }
  engine_.groups[key.group_id] = {};
  return {};
}

Result<std::vector<MulticastGroup>> ReplicationStore::groups(std::uint32_t id) const {
  return read_from(groups_, id, MulticastGroup{.group_id = id, .replicas = {}, .metadata = {}});
}

Status ReplicationStore::insert(const CloneSession& session) {
  return insert_into(sessions_, session, session.session_id);
}

Status ReplicationStore::modify(const CloneSession& session) {
  return modify_in(sessions_, session, session.session_id);
}

Status ReplicationStore::remove(const CloneSession& key) {
  if (sessions_.erase(key.session_id) == 0) {
    return {StatusCode::not_found, name_of(key) + " does not exist"};
  }
  engine_.sessions[key.session_id] = {};
  return {};
}

Result<std::vector<CloneSession>> ReplicationStore::sessions(std::uint32_t id) const {
  CloneSession key;
  key.session_id = id;
  return read_from(sessions_, id, key);
}

void ReplicationStore::clear() {
  for (const auto& [id, group] : groups_) {
    engine_.groups[id] = {};
  }
  for (const auto& [id, session] : sessions_) {
    engine_.sessions[id] = {};
  }
  groups_.clear();
  sessions_.clear();
}

}  // namespace catchment::softswitch
