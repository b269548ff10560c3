// What an entry of a table does: actions, members, groups and one-shot action sets, bound to its
// row.
#include "table_store.hpp"

namespace catchment::softswitch {

void TableStore::count_uses(const Stored& stored, int change) {
  if (profile_ == nullptr) {
    return;
  }
  if (const auto* member = std::get_if<MemberRef>(&stored.entry.action)) {
    profile_->use_member(member->member_id, change);
  } else if (const auto* ref = std::get_if<GroupRef>(&stored.entry.action)) {
    if (StoredGroup* group = profile_->group(ref->group_id)) {
      group->uses += static_cast<std::uint64_t>(static_cast<std::int64_t>(change));
    }
  } else if (std::holds_alternative<OneShot>(stored.entry.action)) {
    profile_->use_one_shot(change);
  }
}

GroupActions::Expanded TableStore::expand_one_shot(const Stored& stored, const DownPorts& down) {
  const auto& set = std::get<OneShot>(stored.entry.action);
  std::vector<GroupActions::Weighted> live;
  for (std::size_t i = 0; i < set.actions.size(); ++i) {
    if (!is_down(down, set.actions[i].watch_port)) {
      live.emplace_back(&stored.one_shot[i]->bound, set.actions[i].weight);
    }
  }
  return stored.one_shot_group->repeated(live);
}

Status TableStore::bind_one_shot(Stored& stored, const OneShot& set) {
  if (profile_ == nullptr || !profile_->info().selector) {
    return {StatusCode::invalid_argument, "table " + info_.name + " has no action selector"};
  }
  if (profile_->has_members()) {
    return {StatusCode::invalid_argument,
            profile_->info().name +
                " has members: its tables take members and groups, or action sets, not both"};
  }
  OneShot canonical;
  for (const OneShotAction& one : set.actions) {
    if (one.weight < 1) {
      return {StatusCode::invalid_argument, "table " + info_.name + ": weights must be > 0"};
    }
    auto action = bind_action(program_, info_, one.action, ActionPlace::entry, memory_);
    if (!action.ok()) {
      return action.status();
    }
    stored.one_shot.push_back(std::move(action.value()));
    canonical.actions.push_back({canonical_call(program_, one.action), one.weight, one.watch_port});
  }
  if (set.actions.empty()) {
    return {StatusCode::invalid_argument, "table " + info_.name + ": the action set is empty"};
  }
  stored.entry.action = std::move(canonical);
  stored.one_shot_group = make_in<GroupActions>(memory_);
  stored.one_shot_group->take(expand_one_shot(stored, down_));
  stored.row.group = &stored.one_shot_group->view;
  return {};
}

/// Points the row at its action; `stored.entry.action` becomes the canonical form.
Status TableStore::bind(Stored& stored, const TableAction& action, ActionPlace place) {
  if (const auto* call = std::get_if<ActionCall>(&action)) {
    if (profile_ != nullptr && place == ActionPlace::entry) {
      return {StatusCode::invalid_argument, "table " + info_.name + " takes members of " +
                                                profile_->info().name + ", not direct actions"};
    }
    auto bound = bind_action(program_, info_, *call, place, memory_);
    if (!bound.ok()) {
      return bound.status();
    }
    stored.action = std::move(bound.value());
    stored.row.action = &stored.action->bound;
    stored.entry.action = canonical_call(program_, *call);
    return {};
  }
  if (const auto* set = std::get_if<OneShot>(&action)) {
    return bind_one_shot(stored, *set);
  }
  if (profile_ == nullptr) {
    return {StatusCode::invalid_argument, "table " + info_.name + ": an entry needs an action"};
  }
  if (const auto* member = std::get_if<MemberRef>(&action)) {
    stored.row.action = profile_->member_action(member->member_id);
    if (stored.row.action == nullptr) {
      return {StatusCode::not_found, "member " + std::to_string(member->member_id) + " of " +
                                         profile_->info().name + " does not exist"};
    }
  } else if (const auto* ref = std::get_if<GroupRef>(&action)) {
    const StoredGroup* group = profile_->group(ref->group_id);
    if (group == nullptr) {
      return {StatusCode::not_found, "group " + std::to_string(ref->group_id) + " of " +
                                         profile_->info().name + " does not exist"};
    }
    stored.row.group = &group->actions->view;
  } else {
    return {StatusCode::invalid_argument, "table " + info_.name + ": an entry needs an action"};
  }
  stored.entry.action = action;
  return {};
}

}  // namespace catchment::softswitch
