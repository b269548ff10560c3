#include "action_codec.hpp"

#include <algorithm>

namespace catchment::softswitch {

const ActionInfo* find_action(const ProgramInfo& program, std::uint32_t id) {
  const auto found = std::ranges::find(program.actions, id, &ActionInfo::id);
  return found == program.actions.end() ? nullptr : &*found;
}

namespace {

const ParamValue* find_param(const ActionCall& call, std::uint32_t id) {
  const auto found = std::ranges::find(call.params, id, &ParamValue::param_id);
  return found == call.params.end() ? nullptr : &*found;
}

std::string allowed_actions(const ProgramInfo& program, const TableInfo& table) {
  std::string names;
  for (const ActionUse& use : table.actions) {
    const ActionInfo* action = find_action(program, use.action_id);
    names += (names.empty() ? "" : ", ") + (action != nullptr ? action->name : "?");
  }
  return names;
}

}  // namespace

Result<InState<StoredAction>> bind_action(const ProgramInfo& program, const TableInfo& table,
                                          const ActionCall& call, ActionPlace place,
                                          StateMemory& memory) {
  const ActionInfo* action = find_action(program, call.action_id);
  const auto use = std::ranges::find(table.actions, call.action_id, &ActionUse::action_id);
  if (action == nullptr || use == table.actions.end()) {
    const std::string name = action != nullptr ? "action " + action->name
                                               : "action id " + std::to_string(call.action_id);
    return Status(StatusCode::invalid_argument, "table " + table.name + " has no " + name +
                                                    "; it takes " +
                                                    allowed_actions(program, table));
  }
  if (place == ActionPlace::entry && !use->entry_allowed) {
    return Status(StatusCode::permission_denied, "action " + action->name + " of table " +
                                                     table.name + " may only be its default");
  }
  if (place == ActionPlace::default_action && !use->default_allowed) {
    return Status(StatusCode::permission_denied,
                  "action " + action->name + " of table " + table.name + " may not be its default");
  }
  if (call.params.size() != action->params.size()) {
    return Status(StatusCode::invalid_argument,
                  "action " + action->name + " takes " + std::to_string(action->params.size()) +
                      " parameters, not " + std::to_string(call.params.size()));
  }
  auto stored = make_in<StoredAction>(memory);
  stored->bound.action = static_cast<std::uint32_t>(use - table.actions.begin());
  for (const ParamInfo& param : action->params) {
    const ParamValue* value = find_param(call, param.id);
    if (value == nullptr) {
      return Status(StatusCode::invalid_argument,
                    "action " + action->name + ": parameter " + param.name + " is missing");
    }
    auto words = to_words(value->value, param.width, action->name + "." + param.name);
    if (!words.ok()) {
      return words.status();
    }
    stored->data.insert(stored->data.end(), words.value().begin(), words.value().end());
  }
  stored->bound.data = stored->data.data();
  return stored;
}

ActionCall canonical_call(const ProgramInfo& program, const ActionCall& call) {
  ActionCall out{call.action_id, {}};
  if (const ActionInfo* action = find_action(program, call.action_id)) {
    for (const ParamInfo& param : action->params) {
      const ParamValue* value = find_param(call, param.id);
      if (value != nullptr) {
        auto words = to_words(value->value, param.width, param.name);
        out.params.push_back({param.id, words.ok() ? to_bytes(words.value()) : value->value});
      }
    }
  }
  return out;
}

}  // namespace catchment::softswitch
