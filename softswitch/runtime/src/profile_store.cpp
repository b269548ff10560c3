#include "profile_store.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace catchment::softswitch {

namespace {

constexpr std::int64_t kRepetitions = 256;

}  // namespace

/// Makes repetitions of weights, at least one of each: 256 in all, or a few more.
GroupActions::Expanded GroupActions::repeated(const std::vector<Weighted>& members) const {
  std::int64_t divisor = 0;
  std::int64_t sum = 0;
  for (const auto& [action, weight] : members) {
    divisor = std::gcd(divisor, static_cast<std::int64_t>(weight));
    sum += weight;
  }
  Expanded fresh(expanded.get_allocator());
  for (const auto& [action, weight] : members) {
    std::int64_t copies = divisor > 0 ? weight / divisor : 1;
    if (divisor > 0 && sum / divisor > kRepetitions) {
      copies = std::max<std::int64_t>(1, std::int64_t{weight} * kRepetitions / sum);
    }
    fresh.insert(fresh.end(), static_cast<std::size_t>(copies), action);
  }
  return fresh;
}

void GroupActions::take(Expanded&& fresh) noexcept {
  expanded.swap(fresh);
  view = {expanded.data(), static_cast<std::uint32_t>(expanded.size())};
}

bool is_down(const DownPorts& down, const std::string& watch_port) {
  if (watch_port.empty() || watch_port.size() > 8 || down.empty()) {
    return false;
  }
  std::uint64_t port = 0;
  for (const char c : watch_port) {
    port = (port << 8) | static_cast<std::uint8_t>(c);
  }
  return down.contains(port);
}

ProfileStore::ProfileStore(const ProgramInfo& program, const ProfileInfo& info,
                           std::vector<const TableInfo*> tables, StateMemory& memory)
    : program_(program), info_(info), tables_(std::move(tables)), memory_(memory) {}

std::string ProfileStore::member_name(std::uint32_t id) const {
  return "member " + std::to_string(id) + " of " + info_.name;
}

std::string ProfileStore::group_name(std::uint32_t id) const {
  return "group " + std::to_string(id) + " of " + info_.name;
}

const rt::BoundAction* ProfileStore::member_action(std::uint32_t member_id) const {
  const auto found = members_.find(member_id);
  return found == members_.end() ? nullptr : &found->second->action->bound;
}

StoredGroup* ProfileStore::group(std::uint32_t group_id) {
  const auto found = groups_.find(group_id);
  return found == groups_.end() ? nullptr : found->second.get();
}

void ProfileStore::use_member(std::uint32_t member_id, int change) {
  const auto found = members_.find(member_id);
  if (found != members_.end()) {
    found->second->uses += static_cast<std::uint64_t>(static_cast<std::int64_t>(change));
  }
}

void ProfileStore::use_one_shot(int change) {
  one_shots_ += static_cast<std::uint64_t>(static_cast<std::int64_t>(change));
}

Status ProfileStore::check_style() const {
  if (one_shots_ != 0) {
    return {StatusCode::invalid_argument,
            info_.name + ": " + std::to_string(one_shots_) +
                " entries have action sets: its tables take members and groups, or action sets, "
                "not both"};
  }
  return {};
}

Status ProfileStore::insert(const ProfileMember& member) {
  if (Status status = check_style(); !status.ok()) {
    return status;
  }
  if (members_.contains(member.member_id)) {
    return {StatusCode::already_exists, member_name(member.member_id) + " exists already"};
  }
  if (info_.size != 0 && members_.size() >= info_.size) {
    return {StatusCode::resource_exhausted,
            info_.name + " is full (" + std::to_string(info_.size) + " members)"};
  }
  auto action = bind_action(program_, *tables_.front(), member.action, ActionPlace::entry, memory_);
  if (!action.ok()) {
    return action.status();
  }
  auto stored = std::make_unique<StoredMember>();
  stored->action = std::move(action.value());
  stored->config = {info_.id, member.member_id, canonical_call(program_, member.action)};
  members_.emplace(member.member_id, std::move(stored));
  return {};
}

Status ProfileStore::modify(const ProfileMember& member) {
  const auto found = members_.find(member.member_id);
  if (found == members_.end()) {
    return {StatusCode::not_found, member_name(member.member_id) + " does not exist"};
  }
  auto action = bind_action(program_, *tables_.front(), member.action, ActionPlace::entry, memory_);
  if (!action.ok()) {
    return action.status();
  }
  StoredMember& stored = *found->second;
  ActionCall canonical = canonical_call(program_, member.action);
  stored.action->become(std::move(*action.value()));
  std::swap(stored.config.action, canonical);
  return {};
}

Status ProfileStore::remove(const ProfileMember& key) {
  const auto found = members_.find(key.member_id);
  if (found == members_.end()) {
    return {StatusCode::not_found, member_name(key.member_id) + " does not exist"};
  }
  if (found->second->uses != 0) {
    return {StatusCode::failed_precondition, member_name(key.member_id) + " is still in use"};
  }
  members_.erase(found);
  return {};
}

Status ProfileStore::check(const ProfileGroup& group) const {
  if (!info_.selector) {
    return {StatusCode::invalid_argument, info_.name + " is no selector: it has no groups"};
  }
  std::int64_t total = 0;
  std::set<std::uint32_t> seen;
  for (const ProfileGroupMember& member : group.members) {
    if (!members_.contains(member.member_id)) {
      return {StatusCode::not_found, member_name(member.member_id) + " does not exist"};
    }
    if (!seen.insert(member.member_id).second) {
      return {StatusCode::invalid_argument, group_name(group.group_id) + ": member " +
                                                std::to_string(member.member_id) + " twice"};
    }
    if (member.weight < 1) {
      return {StatusCode::invalid_argument, group_name(group.group_id) + ": weights must be > 0"};
    }
    total += group.counts_members ? 1 : member.weight;
  }
  const std::int64_t limit = group.max_size > 0 ? group.max_size : info_.max_group_size;
  if (limit > 0 && total > limit) {
    return {StatusCode::resource_exhausted,
            group_name(group.group_id) + " is larger than " + std::to_string(limit)};
  }
  return {};
}

GroupActions::Expanded ProfileStore::expand(const GroupActions& actions,
                                            const std::vector<ProfileGroupMember>& members,
                                            const DownPorts& down) const {
  std::vector<GroupActions::Weighted> live;
  for (const ProfileGroupMember& member : members) {
    if (!is_down(down, member.watch_port)) {
      live.emplace_back(member_action(member.member_id), member.weight);
    }
  }
  return actions.repeated(live);
}

Status ProfileStore::insert(const ProfileGroup& group) {
  if (Status status = check_style(); !status.ok()) {
    return status;
  }
  if (groups_.contains(group.group_id)) {
    return {StatusCode::already_exists, group_name(group.group_id) + " exists already"};
  }
  if (Status status = check(group); !status.ok()) {
    return status;
  }
  auto stored = std::make_unique<StoredGroup>();
  stored->actions = make_in<GroupActions>(memory_);
  stored->config = group;
  stored->actions->take(expand(*stored->actions, group.members, down_));
  groups_.emplace(group.group_id, std::move(stored));
  for (const ProfileGroupMember& member : group.members) {
    use_member(member.member_id, 1);
  }
  return {};
}

Status ProfileStore::modify(const ProfileGroup& group) {
  StoredGroup* stored = this->group(group.group_id);
  if (stored == nullptr) {
    return {StatusCode::not_found, group_name(group.group_id) + " does not exist"};
  }
  if (group.max_size != 0 && group.max_size != stored->config.max_size) {
    return {StatusCode::invalid_argument,
            group_name(group.group_id) + ": the maximum size cannot change"};
  }
  ProfileGroup wanted = group;
  wanted.max_size = stored->config.max_size;
  if (Status status = check(wanted); !status.ok()) {
    return status;
  }
  GroupActions::Expanded actions = expand(*stored->actions, wanted.members, down_);
  for (const ProfileGroupMember& member : stored->config.members) {
    use_member(member.member_id, -1);
  }
  for (const ProfileGroupMember& member : wanted.members) {
    use_member(member.member_id, 1);
  }
  std::swap(stored->config, wanted);
  stored->actions->take(std::move(actions));
  return {};
}

Status ProfileStore::remove(const ProfileGroup& key) {
  StoredGroup* stored = group(key.group_id);
  if (stored == nullptr) {
    return {StatusCode::not_found, group_name(key.group_id) + " does not exist"};
  }
  if (stored->uses != 0) {
    return {StatusCode::failed_precondition, group_name(key.group_id) + " is still in use"};
  }
  for (const ProfileGroupMember& member : stored->config.members) {
    use_member(member.member_id, -1);
  }
  groups_.erase(key.group_id);
  return {};
}

Result<std::vector<ProfileMember>> ProfileStore::members(std::uint32_t member_id) const {
  std::vector<ProfileMember> out;
  for (const auto& [id, member] : members_) {
    if (member_id == 0 || id == member_id) {
      out.push_back(member->config);
    }
  }
  if (member_id != 0 && out.empty()) {
    return Status(StatusCode::not_found, member_name(member_id) + " does not exist");
  }
  return out;
}

Result<std::vector<ProfileGroup>> ProfileStore::groups(std::uint32_t group_id) const {
  std::vector<ProfileGroup> out;
  for (const auto& [id, group] : groups_) {
    if (group_id == 0 || id == group_id) {
      out.push_back(group->config);
    }
  }
  if (group_id != 0 && out.empty()) {
    return Status(StatusCode::not_found, group_name(group_id) + " does not exist");
  }
  return out;
}

void ProfileStore::prepare(const DownPorts& down, PortChanges& changes) const {
  for (const auto& [id, group] : groups_) {
    changes.emplace_back(group->actions.get(),
                         expand(*group->actions, group->config.members, down));
  }
}

}  // namespace catchment::softswitch
