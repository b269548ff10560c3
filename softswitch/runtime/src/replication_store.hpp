// Multicast groups and clone sessions.
#pragma once

#include <cstdint>
#include <map>

#include "catchment/softswitch/entities.hpp"
#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"
#include "state_memory.hpp"

namespace catchment::softswitch {

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
  void publish(const MulticastGroup& group);
  void publish(const CloneSession& session);

  using Replicas = std::pmr::vector<Replica>;
  /// Keeps a copy that frames can be shown.
  rt::ReplicaList keep(std::map<std::uint32_t, Replicas>& copies, std::uint32_t id,
                       const std::vector<Replica>& replicas);

  rt::Engine& engine_;
  StateMemory& memory_;
  std::map<std::uint32_t, MulticastGroup> groups_;
  std::map<std::uint32_t, CloneSession> sessions_;
  std::map<std::uint32_t, Replicas> group_replicas_;
  std::map<std::uint32_t, Replicas> session_replicas_;
};

}  // namespace catchment::softswitch
