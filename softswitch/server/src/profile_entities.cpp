#include "profile_entities.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "action_codec.hpp"

namespace catchment::server {

namespace {

using p4::v1::Update;

// Throws unless some table of the profile may run the action.
void check_action(const p4config::ActionProfile& profile, std::uint32_t action_id,
                  const Schema& schema) {
  const auto takes = [&](std::uint32_t table_id) {
    return schema.table(table_id).actions.contains(action_id);
  };
  if (std::none_of(profile.table_ids().begin(), profile.table_ids().end(), takes)) {
    throw invalid_argument("action profile '" + profile.preamble().name() +
                           "': no table of it has an action with id " + std::to_string(action_id));
  }
}

template <class Value>
void apply(Update::Type type, const Value& value, const Target& target) {
  auto& dataplane = target.dataplane();
  check(type == Update::INSERT   ? dataplane.insert(value)
        : type == Update::MODIFY ? dataplane.modify(value)
                                 : dataplane.remove(value));
}

void require_id(std::uint32_t id, const char* kind, const p4config::ActionProfile& profile) {
  if (id == 0) {
    throw invalid_argument("action profile '" + profile.preamble().name() + "': the " + kind +
                           " id must not be 0");
  }
}

softswitch::ProfileGroup decode_group(const p4::v1::ActionProfileGroup& message,
                                      const p4config::ActionProfile& profile) {
  const std::string where = "action profile '" + profile.preamble().name() + "', group " +
                            std::to_string(message.group_id()) + ": ";
  softswitch::ProfileGroup group;
  group.max_size = message.max_size();
  group.counts_members = profile.has_sum_of_members();
  if (group.max_size < 0) {
    throw invalid_argument(where + "max_size is negative");
  }
  if (profile.max_group_size() > 0 &&
      (group.max_size == 0 || group.max_size > profile.max_group_size())) {
    throw invalid_argument(where + "max_size " + std::to_string(group.max_size) + " is not in 1.." +
                           std::to_string(profile.max_group_size()));
  }
  std::set<std::uint32_t> seen;
  for (const auto& member : message.members()) {
    if (!seen.insert(member.member_id()).second) {
      throw invalid_argument(where + "member " + std::to_string(member.member_id()) +
                             " is there twice; give it a weight instead");
    }
    check_weight(member.weight(), profile, where);
    if (member.watch_kind_case() == p4::v1::ActionProfileGroup::Member::kWatch) {
      throw unimplemented(where + "watch is deprecated; use watch_port");
    }
    group.members.push_back({member.member_id(), member.weight(), member.watch_port()});
  }
  return group;
}

// A key that is not there selects nothing.
template <class Value>
std::vector<Value> select(const Value& filter, const Target& target) {
  auto result = target.dataplane().read(filter);
  if (!result.ok() && result.status().code() == softswitch::StatusCode::not_found) {
    return {};
  }
  return take(std::move(result));
}

}  // namespace

void write_member(Update::Type type, const p4::v1::ActionProfileMember& message, Target& target) {
  const auto& profile = target.schema().profile(message.action_profile_id());
  softswitch::ProfileMember member;
  member.profile_id = message.action_profile_id();
  member.member_id = message.member_id();
  if (type != Update::DELETE) {
    require_id(message.member_id(), "member", profile);
    check_action(profile, message.action().action_id(), target.schema());
    member.action = decode_action(message.action(), target.schema());
  }
  apply(type, member, target);
}

void write_group(Update::Type type, const p4::v1::ActionProfileGroup& message, Target& target) {
  const auto& profile = target.schema().profile(message.action_profile_id());
  if (!profile.with_selector()) {
    throw invalid_argument("action profile '" + profile.preamble().name() +
                           "' is not a selector, so it has no groups");
  }
  softswitch::ProfileGroup group;
  if (type != Update::DELETE) {
    require_id(message.group_id(), "group", profile);
    group = decode_group(message, profile);
  }
  group.profile_id = message.action_profile_id();
  group.group_id = message.group_id();
  apply(type, group, target);
}

void read_members(const p4::v1::ActionProfileMember& request, const Target& target,
                  EntitySink& sink) {
  softswitch::ProfileMember filter;
  filter.profile_id = request.action_profile_id();
  filter.member_id = request.member_id();
  if (filter.profile_id != 0) {
    target.schema().profile(filter.profile_id);
  }
  for (const auto& member : select(filter, target)) {
    auto& message = *sink.add().mutable_action_profile_member();
    message.set_action_profile_id(member.profile_id);
    message.set_member_id(member.member_id);
    encode_action(member.action, *message.mutable_action());
  }
}

void read_groups(const p4::v1::ActionProfileGroup& request, const Target& target,
                 EntitySink& sink) {
  softswitch::ProfileGroup filter;
  filter.profile_id = request.action_profile_id();
  filter.group_id = request.group_id();
  if (filter.profile_id != 0) {
    target.schema().profile(filter.profile_id);
  }
  for (const auto& group : select(filter, target)) {
    auto& message = *sink.add().mutable_action_profile_group();
    message.set_action_profile_id(group.profile_id);
    message.set_group_id(group.group_id);
    message.set_max_size(group.max_size);
    for (const auto& member : group.members) {
      auto& entry = *message.add_members();
      entry.set_member_id(member.member_id);
      entry.set_weight(member.weight);
      if (!member.watch_port.empty()) {
        entry.set_watch_port(member.watch_port);
      }
    }
  }
}

}  // namespace catchment::server
