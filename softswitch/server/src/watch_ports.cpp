#include "watch_ports.hpp"

#include "bytestring.hpp"
#include "rpc_error.hpp"

namespace catchment::server {

void WatchPorts::check(const p4::v1::Update& update) const {
  if (update.type() == p4::v1::Update::DELETE) {
    return;
  }
  const auto& group = update.entity().action_profile_group();
  for (const auto& member : group.members()) {
    check(member.watch_port(), "group " + std::to_string(group.group_id()));
  }
  const auto& entry = update.entity().table_entry();
  for (const auto& one : entry.action().action_profile_action_set().action_profile_actions()) {
    check(one.watch_port(), "action set of table " + std::to_string(entry.table_id()));
  }
}

void WatchPorts::check(const std::string& port, const std::string& owner) const {
  if (port.empty()) {
    return;
  }
  constexpr unsigned kPortBits = 9;  // standard_metadata_t.egress_port
  bool known = false;
  try {
    const std::uint64_t number = to_uint64(port, kPortBits, {"watch port", ""});
    known = ports_.empty() || ports_.contains(static_cast<std::uint32_t>(number));
  } catch (const RpcError&) {
    known = false;
  }
  if (!known) {
    throw invalid_argument(owner + ": watch_port " + to_hex(port) +
                           " is not a port of this switch");
  }
}

}  // namespace catchment::server
