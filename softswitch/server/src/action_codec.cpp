#include "action_codec.hpp"

#include <algorithm>
#include <string>
#include <variant>

#include "bytestring.hpp"
#include "rpc_error.hpp"
#include "where.hpp"

namespace catchment::server {

namespace {

using p4::v1::TableAction;
using p4config::ActionRef;

const p4config::Action::Param& find_param(const p4config::Action& action, std::uint32_t id) {
  const auto found = std::find_if(action.params().begin(), action.params().end(),
                                  [id](const auto& param) { return param.id() == id; });
  if (found == action.params().end()) {
    throw invalid_argument("action '" + action.preamble().name() + "' has no parameter with id " +
                           std::to_string(id));
  }
  return *found;
}

void check_use(std::uint32_t action_id, bool as_default, const TableSchema& table,
               const Schema& schema) {
  const auto use = table.actions.find(action_id);
  if (use == table.actions.end()) {
    throw invalid_argument("table '" + table.name() + "' has no action with id " +
                           std::to_string(action_id));
  }
  const auto scope = use->second->scope();
  if (as_default ? scope == ActionRef::TABLE_ONLY : scope == ActionRef::DEFAULT_ONLY) {
    throw permission_denied("table '" + table.name() + "': action '" +
                            schema.action(action_id).preamble().name() + "' may " +
                            (as_default ? "not be the default action (@tableonly)"
                                        : "only be the default action (@defaultonly)"));
  }
}

softswitch::OneShot decode_one_shot(const p4::v1::ActionProfileActionSet& set,
                                    const TableSchema& table, const Schema& schema) {
  softswitch::OneShot result;
  const auto& profile = schema.profile(table.info->implementation_id());
  std::int64_t total = 0;
  for (const auto& one : set.action_profile_actions()) {
    check_use(one.action().action_id(), false, table, schema);
    check_weight(one.weight(), profile, "table '" + table.name() + "': ");
    if (one.watch_kind_case() == p4::v1::ActionProfileAction::kWatch) {
      throw unimplemented("table '" + table.name() + "': watch is deprecated; use watch_port");
    }
    result.actions.push_back({decode_action(one.action(), schema), one.weight(), one.watch_port()});
    total += one.weight();
  }
  if (profile.has_sum_of_members()) {
    total = set.action_profile_actions_size();
  }
  if (profile.max_group_size() > 0 && total > profile.max_group_size()) {
    throw invalid_argument("table '" + table.name() + "': an action set of size " +
                           std::to_string(total) + " is larger than " +
                           std::to_string(profile.max_group_size()));
  }
  return result;
}

void require_form(bool right, const TableSchema& table, const char* sent, const char* wanted) {
  if (!right) {
    throw invalid_argument("table '" + table.name() + "' takes " + wanted + ", the request has " +
                           sent);
  }
}

}  // namespace

void check_weight(std::int32_t weight, const p4config::ActionProfile& profile,
                  const std::string& where) {
  if (weight <= 0) {
    throw invalid_argument(where + "a weight of " + std::to_string(weight) + " is not positive");
  }
  const std::int32_t most = profile.sum_of_members().max_member_weight();
  if (most > 0 && weight > most) {
    throw invalid_argument(where + "a weight of " + std::to_string(weight) + " is more than the " +
                           std::to_string(most) + " of action profile '" +
                           profile.preamble().name() + "'");
  }
}

softswitch::ActionCall decode_action(const p4::v1::Action& action, const Schema& schema) {
  const p4config::Action& info = schema.action(action.action_id());
  softswitch::ActionCall call;
  call.action_id = action.action_id();
  call.params.reserve(static_cast<std::size_t>(action.params_size()));
  for (const auto& param : action.params()) {
    const auto& known = find_param(info, param.param_id());
    const Where where{"action", info.preamble().name(), "parameter", known.name()};
    for (const auto& earlier : call.params) {
      if (earlier.param_id == param.param_id()) {
        throw invalid_argument(where.text() + " is given twice");
      }
    }
    require_bits(known.bitwidth(), where);
    call.params.push_back(
        {param.param_id(),
         to_fixed(param.value(), static_cast<unsigned>(known.bitwidth()), where)});
  }
  if (action.params_size() < info.params_size()) {
    for (const auto& known : info.params()) {
      if (std::none_of(call.params.begin(), call.params.end(),
                       [&](const auto& param) { return param.param_id == known.id(); })) {
        throw invalid_argument("action '" + info.preamble().name() + "', parameter '" +
                               known.name() + "' is missing");
      }
    }
  }
  return call;
}

softswitch::TableAction decode_table_action(const p4::v1::TableEntry& entry,
                                            const TableSchema& table, const Schema& schema) {
  if (!entry.has_action()) {
    return {};
  }
  const TableAction& action = entry.action();
  const std::uint32_t profile_id = table.info->implementation_id();
  const bool selector = profile_id != 0 && schema.profile(profile_id).with_selector();
  const char* wanted = profile_id == 0 ? "an action"
                       : selector      ? "an action profile member, group or action set"
                                       : "an action profile member";
  if (profile_id != 0 && entry.is_default_action()) {
    throw invalid_argument("table '" + table.name() +
                           "': the default action of a table with an action profile cannot change");
  }
  switch (action.type_case()) {
    case TableAction::kAction:
      require_form(profile_id == 0, table, "an action", wanted);
      check_use(action.action().action_id(), entry.is_default_action(), table, schema);
      return decode_action(action.action(), schema);
    case TableAction::kActionProfileMemberId:
      require_form(profile_id != 0, table, "an action profile member", wanted);
      return softswitch::MemberRef{action.action_profile_member_id()};
    case TableAction::kActionProfileGroupId:
      require_form(selector, table, "an action profile group", wanted);
      return softswitch::GroupRef{action.action_profile_group_id()};
    case TableAction::kActionProfileActionSet:
      require_form(selector, table, "an action set", wanted);
      return decode_one_shot(action.action_profile_action_set(), table, schema);
    default:
      throw invalid_argument("table '" + table.name() + "': the action is empty; it takes " +
                             wanted);
  }
}

void encode_action(const softswitch::ActionCall& call, p4::v1::Action& result) {
  result.set_action_id(call.action_id);
  for (const auto& param : call.params) {
    auto& message = *result.add_params();
    message.set_param_id(param.param_id);
    message.set_value(to_canonical(param.value));
  }
}

void encode_table_action(const softswitch::TableAction& action, p4::v1::TableEntry& result) {
  if (const auto* call = std::get_if<softswitch::ActionCall>(&action)) {
    encode_action(*call, *result.mutable_action()->mutable_action());
  } else if (const auto* member = std::get_if<softswitch::MemberRef>(&action)) {
    result.mutable_action()->set_action_profile_member_id(member->member_id);
  } else if (const auto* group = std::get_if<softswitch::GroupRef>(&action)) {
    result.mutable_action()->set_action_profile_group_id(group->group_id);
  } else if (const auto* set = std::get_if<softswitch::OneShot>(&action)) {
    auto& message = *result.mutable_action()->mutable_action_profile_action_set();
    for (const auto& one : set->actions) {
      auto& entry = *message.add_action_profile_actions();
      encode_action(one.action, *entry.mutable_action());
      entry.set_weight(one.weight);
      if (!one.watch_port.empty()) {
        entry.set_watch_port(one.watch_port);
      }
    }
  }
}

}  // namespace catchment::server
