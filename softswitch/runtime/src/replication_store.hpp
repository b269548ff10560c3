// Multicast groups and clone sessions.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "catchment/softswitch/entities.hpp"
#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"
#include "state_memory.hpp"

namespace catchment::softswitch {

/// What a call changes it changes as a whole: when memory ends in it, all is as before.
class ReplicationStore {
 public:
  ReplicationStore(rt::Engine& engine, StateMemory& memory) : engine_(engine), memory_(memory) {}

  Status insert(const MulticastGroup& group);
  Status modify(const MulticastGroup& group);
  Status remove(const MulticastGroup& key);
  [[nodiscard]] Result<std::vector<MulticastGroup>> groups(std::uint32_t id) const;
  Status insert(const CloneSession& session);
  Status modify(const CloneSession& session);
  Status remove(const CloneSession& key);
  [[nodiscard]] Result<std::vector<CloneSession>> sessions(std::uint32_t id) const;
  void clear();

 private:
  /// What a client gave, and a copy of its replicas that frames can be shown.
  template <class Entity>
  struct Stored {
    Stored(Entity given, StateMemory& memory)
        : entity(std::move(given)),
          replicas(entity.replicas.begin(), entity.replicas.end(), &memory) {}

    Entity entity;
    std::pmr::vector<Replica> replicas;
  };
  template <class Entity>
  using StoredById = std::map<std::uint32_t, Stored<Entity>>;

  template <class Entity>
  Status insert_into(StoredById<Entity>& map, const Entity& entity, std::uint32_t id);
  template <class Entity>
  Status modify_in(StoredById<Entity>& map, const Entity& entity, std::uint32_t id);
  void publish(const Stored<MulticastGroup>& group) noexcept;
  void publish(const Stored<CloneSession>& session) noexcept;

  rt::Engine& engine_;
  StateMemory& memory_;
  StoredById<MulticastGroup> groups_;
  StoredById<CloneSession> sessions_;
};

}  // namespace catchment::softswitch
