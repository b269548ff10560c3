#include "arbiter.hpp"

#include <algorithm>
#include <utility>

#include "rpc_error.hpp"

namespace catchment::server {

namespace {

constexpr std::size_t kMaxClients = 4096;
// A role is remembered, with the highest id that it has seen, after its clients have gone.
constexpr std::size_t kMaxRoles = 1024;
constexpr std::size_t kMaxRoleName = 256;
constexpr std::size_t kMaxRoleConfig = std::size_t{64} << 10;

std::string role_text(const std::string& role) {
  return role.empty() ? "the default role" : "role '" + role + "'";
}

void check_length(const std::string& field, std::size_t bytes, std::size_t most) {
  if (bytes > most) {
    throw invalid_argument(field + " has " + std::to_string(bytes) + " bytes; at most " +
                           std::to_string(most) + " are taken");
  }
}

}  // namespace

std::string ElectionId::text() const {
  std::string result = std::to_string(low);
  if (high != 0) {
    result.insert(0, std::to_string(high) + ":");
  }
  return result;
}

Arbiter::Client* Arbiter::find(const Session& session) {
  const auto found = std::find_if(clients_.begin(), clients_.end(), [&](const Client& client) {
    return client.session.get() == &session;
  });
  return found == clients_.end() ? nullptr : &*found;
}

void Arbiter::check(const p4::v1::MasterArbitrationUpdate& request, const std::string& role,
                    const RoleAccess& access, const Session& session) {
  check_length("role.name", role.size(), kMaxRoleName);
  check_length("role.config", request.role().config().ByteSizeLong(), kMaxRoleConfig);
  const Client* known = find(session);
  if (request.device_id() != device_id_) {
    const std::string text = "device_id " + std::to_string(request.device_id()) +
                             " is not served here; this switch is device_id " +
                             std::to_string(device_id_);
    throw known == nullptr ? not_found(text) : failed_precondition(text);
  }
  if (request.role().id() != 0) {
    throw invalid_argument(
        "role.id is not supported (deprecated since P4Runtime 1.4): name the role in role.name");
  }
  if (known != nullptr && known->role != role) {
    throw failed_precondition("this stream belongs to " + role_text(known->role) +
                              "; open another stream for " + role_text(role));
  }
  if (known == nullptr && clients_.size() >= kMaxClients) {
    throw RpcError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                   "the limit of " + std::to_string(kMaxClients) + " open streams is reached");
  }
  if (!role.empty() && !roles_.contains(role) && roles_.size() >= kMaxRoles) {
    throw RpcError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                   "the limit of " + std::to_string(kMaxRoles) +
                       " roles is reached, of all that clients have named since the switch began");
  }
  if (!request.has_election_id()) {
    return;
  }
  for (const auto& [name, other] : roles_) {
    if (const std::uint32_t object = access.conflict(other.access);
        name != role && other.primary != nullptr && object != 0) {
      throw invalid_argument("role.config: object " + std::to_string(object) +
                             " cannot be exclusive to one role and writable for another (" +
                             role_text(name) + ")");
    }
  }
  const auto wanted = ElectionId::from(request.election_id());
  for (const Client& client : clients_) {
    if (client.session.get() != &session && client.role == role && client.election_id == wanted) {
      throw invalid_argument("election_id " + wanted.text() + " is in use by another client of " +
                             role_text(role) + " (" + client.session->peer() + ")");
    }
  }
}

void Arbiter::update(const std::shared_ptr<Session>& session,
                     const p4::v1::MasterArbitrationUpdate& request) {
  const std::lock_guard serial(update_mutex_);
  const std::string name = request.role().name();
  std::optional<ElectionId> election_id;
  if (request.has_election_id()) {
    election_id = ElectionId::from(request.election_id());
  }
  RoleAccess access = RoleAccess::from(request.role());
  bool wins = false;
  bool steps_down = false;
  {
    const std::lock_guard lock(mutex_);
    check(request, name, access, *session);
    Client* client = find(*session);
    if (client == nullptr) {
      client = &clients_.emplace_back(Client{session, name, election_id});
    }
    client->election_id = election_id;
    Role& role = roles_[name];
    wins = election_id.has_value() && (!role.highest || *election_id >= *role.highest);
    steps_down = !wins && role.primary == session.get();
    if (wins) {
      role.highest = election_id;
      role.primary = session.get();
      role.access = std::move(access);
      role.config.reset();
      if (request.role().has_config()) {
        role.config = request.role().config();
      }
    } else if (steps_down) {
      role.primary = nullptr;
    }
  }
  if (!wins) {
    if (steps_down) {
      notify_others(name, session.get());
    }
    notify(*session);
    return;
  }
  notify_others(name, session.get());
  // Writes of the former primary that have started are finished when this lock is ours.
  state_.exclusive().unlock();
  notify(*session);
}

void Arbiter::remove(const Session& session) {
  const std::lock_guard serial(update_mutex_);
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    const Client* client = find(session);
    if (client == nullptr) {
      return;
    }
    name = client->role;
    clients_.erase(clients_.begin() + (client - clients_.data()));
    Role& role = roles_[name];
    if (role.primary != &session) {
      return;
    }
    role.primary = nullptr;
  }
  notify_others(name, nullptr);
}

Permission Arbiter::require_primary(const std::string& role, const p4::v1::Uint128* election_id) {
  const std::lock_guard lock(mutex_);
  const auto found = roles_.find(role);
  if (found == roles_.end()) {
    if (role.empty()) {
      throw permission_denied(
          "there is no primary: open a StreamChannel and send a "
          "MasterArbitrationUpdate first");
    }
    throw not_found(role_text(role) + " is unknown: no client has asked for it on its stream");
  }
  const Client* primary = found->second.primary == nullptr ? nullptr : find(*found->second.primary);
  if (primary == nullptr) {
    throw permission_denied("there is no primary for " + role_text(role) +
                            "; the highest election_id seen is " +
                            (found->second.highest ? found->second.highest->text() : "unset"));
  }
  if (election_id == nullptr || ElectionId::from(*election_id) != *primary->election_id) {
    throw permission_denied(
        "only the primary of " + role_text(role) + " (election_id " + primary->election_id->text() +
        ") may write; the request has election_id " +
        (election_id == nullptr ? "unset" : ElectionId::from(*election_id).text()));
  }
  std::vector<RoleAccess> others;
  if (!role.empty()) {
    for (const auto& [name, other] : roles_) {
      if (name != role && other.primary != nullptr) {
        others.push_back(other.access);
      }
    }
  }
  return {role, found->second.access, std::move(others)};
}

bool Arbiter::is_primary(const Session& session) {
  const std::lock_guard lock(mutex_);
  return std::any_of(roles_.begin(), roles_.end(),
                     [&](const auto& role) { return role.second.primary == &session; });
}

std::vector<std::shared_ptr<Session>> Arbiter::packet_receivers() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Session>> result;
  for (const auto& [name, role] : roles_) {
    const Client* client = role.primary == nullptr ? nullptr : find(*role.primary);
    if (client != nullptr && role.access.receives_packets()) {
      result.push_back(client->session);
    }
  }
  return result;
}

void Arbiter::notify(const Session& receiver) {
  const std::lock_guard lock(mutex_);
  if (const Client* client = find(receiver)) {
    tell(*client);
  }
}

void Arbiter::notify_others(const std::string& role, const Session* except) {
  const std::lock_guard lock(mutex_);
  for (const Client& client : clients_) {
    if (client.role == role && client.session.get() != except) {
      tell(client);
    }
  }
}

void Arbiter::tell(const Client& client) {
  const Role& role = roles_[client.role];
  p4::v1::StreamMessageResponse response;
  auto& message = *response.mutable_arbitration();
  message.set_device_id(device_id_);
  if (!client.role.empty()) {
    message.mutable_role()->set_name(client.role);
  }
  if (role.config) {
    *message.mutable_role()->mutable_config() = *role.config;
  }
  if (role.highest) {
    message.mutable_election_id()->set_high(role.highest->high);
    message.mutable_election_id()->set_low(role.highest->low);
  }
  auto& status = *message.mutable_status();
  if (role.primary == client.session.get()) {
    status.set_code(grpc::StatusCode::OK);
    status.set_message("this client is the primary");
  } else if (role.primary != nullptr) {
    status.set_code(grpc::StatusCode::ALREADY_EXISTS);
    status.set_message("another client is the primary");
  } else {
    status.set_code(grpc::StatusCode::NOT_FOUND);
    status.set_message("there is no primary");
  }
  client.session->send(std::move(response));
}

}  // namespace catchment::server
