// Members and groups of one action profile or selector.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "action_codec.hpp"

namespace catchment::softswitch {

/// Ports that are down; a member that watches one is passed over.
using DownPorts = std::set<std::uint64_t>;

/// The actions of a selector group as rows point to them; its address stays while it lives.
struct GroupActions {
  using allocator_type = std::pmr::polymorphic_allocator<>;
  using Weighted = std::pair<const rt::BoundAction*, std::int32_t>;
  using Expanded = std::pmr::vector<const rt::BoundAction*>;
  explicit GroupActions(allocator_type memory) : expanded(memory) {}
  /// These actions, each as often as its weight says, in the memory of this group.
  [[nodiscard]] Expanded repeated(const std::vector<Weighted>& members) const;
  /// Takes what `repeated` gave.
  void take(Expanded&& fresh) noexcept;

  rt::SelectorGroup view;
  Expanded expanded;
};

/// What groups will be when ports have come up or gone down: all is made before any is taken.
using PortChanges = std::vector<std::pair<GroupActions*, GroupActions::Expanded>>;

struct StoredGroup {
  InState<GroupActions> actions;
  ProfileGroup config;
  std::uint64_t uses = 0;
};

/// What a call changes it changes as a whole: when memory ends in it, all is as before.
class ProfileStore {
 public:
  /// `tables`: those whose implementation this profile is; at least one.
  ProfileStore(const ProgramInfo& program, const ProfileInfo& info,
               std::vector<const TableInfo*> tables, StateMemory& memory);

  Status insert(const ProfileMember& member);
  Status modify(const ProfileMember& member);
  Status remove(const ProfileMember& key);
  Status insert(const ProfileGroup& group);
  Status modify(const ProfileGroup& group);
  Status remove(const ProfileGroup& key);
  [[nodiscard]] Result<std::vector<ProfileMember>> members(std::uint32_t member_id) const;
  [[nodiscard]] Result<std::vector<ProfileGroup>> groups(std::uint32_t group_id) const;

  [[nodiscard]] const ProfileInfo& info() const { return info_; }
  /// Finds what a row of a table refers to; nullptr: there is none of that id. Callers count the
  /// use of it.
  const rt::BoundAction* member_action(std::uint32_t member_id) const;
  StoredGroup* group(std::uint32_t group_id);
  void use_member(std::uint32_t member_id, int change);
  /// A profile is used by members and groups, or by action sets, not both at a time.
  void use_one_shot(int change);
  [[nodiscard]] bool has_members() const { return !members_.empty() || !groups_.empty(); }

  /// Adds what each group will be.
  void prepare(const DownPorts& down, PortChanges& changes) const;
  void set_down_ports(DownPorts&& down) noexcept { down_.swap(down); }

 private:
  struct StoredMember {
    InState<StoredAction> action;  // rows point here; a modify changes it in place
    ProfileMember config;
    std::uint64_t uses = 0;
  };
  Status check(const ProfileGroup& group) const;
  [[nodiscard]] Status check_style() const;
  /// Makes the group's actions while these ports are down.
  [[nodiscard]] GroupActions::Expanded expand(const GroupActions& actions,
                                              const std::vector<ProfileGroupMember>& members,
                                              const DownPorts& down) const;
  [[nodiscard]] std::string member_name(std::uint32_t id) const;
  [[nodiscard]] std::string group_name(std::uint32_t id) const;

  const ProgramInfo& program_;
  const ProfileInfo& info_;
  std::vector<const TableInfo*> tables_;
  StateMemory& memory_;
  std::map<std::uint32_t, std::unique_ptr<StoredMember>> members_;
  std::map<std::uint32_t, std::unique_ptr<StoredGroup>> groups_;
  std::uint64_t one_shots_ = 0;
  DownPorts down_;
};

/// Whether a member with this watch port (byte string, may be empty) is passed over.
bool is_down(const DownPorts& down, const std::string& watch_port);

}  // namespace catchment::softswitch
