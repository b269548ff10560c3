// Client arbitration (P4Runtime 1.4, "Client Arbitration and Controller Replication"): decides
// which client may write.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "p4/v1/p4runtime.pb.h"
#include "permission.hpp"
#include "role_access.hpp"
#include "session.hpp"
#include "state_lock.hpp"

namespace catchment::server {

// A 128-bit election id; the order is that of the specification.
struct ElectionId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const ElectionId&) const = default;

  static ElectionId from(const p4::v1::Uint128& id) { return {id.high(), id.low()}; }
  std::string text() const;
};

// Keeps, per role, the live clients, the highest election id ever seen, the primary and what its
// `role.config` allows.
class Arbiter {
 public:
  // `state` is the lock that writers hold exclusively while they are at work.
  Arbiter(std::uint64_t device_id, StateLock& state) : device_id_(device_id), state_(state) {}

  // Handles a MasterArbitrationUpdate and sends the notifications that follow from it. Throws
  // RpcError when the stream has to end. A new primary hears of its election only after the last
  // write of the one before.
  void update(const std::shared_ptr<Session>& session,
              const p4::v1::MasterArbitrationUpdate& request);

  // Forgets a client whose stream ended, and tells the others when it was the primary.
  void remove(const Session& session);

  // Returns what the primary that (role, election id) names may do; throws RpcError unless they
  // name it. Call it with the state lock held, so that the answer stands until the write is done.
  // `election_id` nullptr: unset.
  Permission require_primary(const std::string& role, const p4::v1::Uint128* election_id);

  // Returns whether this session is the primary of its role (packet-out needs that).
  bool is_primary(const Session& session);

  // Returns the primaries that get packet-ins and digests.
  std::vector<std::shared_ptr<Session>> packet_receivers();

 private:
  struct Client {
    std::shared_ptr<Session> session;
    std::string role;
    std::optional<ElectionId> election_id;
  };
  struct Role {
    std::optional<ElectionId> highest;
    const Session* primary = nullptr;
    // As the last primary gave them.
    RoleAccess access;
    std::optional<google::protobuf::Any> config;
  };

  Client* find(const Session& session);
  void check(const p4::v1::MasterArbitrationUpdate& request, const std::string& role,
             const RoleAccess& access, const Session& session);
  void notify(const Session& receiver);
  void notify_others(const std::string& role, const Session* except);
  // With the mutex held.
  void tell(const Client& client);

  const std::uint64_t device_id_;
  StateLock& state_;
  std::mutex update_mutex_;  // one arbitration at a time, its notifications included
  std::mutex mutex_;         // guards what follows
  std::vector<Client> clients_;
  std::map<std::string, Role> roles_;
};

}  // namespace catchment::server
