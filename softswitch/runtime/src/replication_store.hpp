// Multicast groups and clone sessions.
#pragma once

#include <cstdint>
#include <map>

#include "catchment/softswitch/entities.hpp"
#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/status.hpp"

namespace catchment::softswitch {

class ReplicationStore {
 public:
  explicit ReplicationStore(rt::Engine& engine) : engine_(engine) {}

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

  rt::Engine& engine_;
  std::map<std::uint32_t, MulticastGroup> groups_;
  std::map<std::uint32_t, CloneSession> sessions_;
};

}  // namespace catchment::softswitch
