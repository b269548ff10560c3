// ActionCall <-> the words that a compiled action reads.
#pragma once

#include <cstdint>
#include <memory>

#include "catchment/softswitch/entities.hpp"
#include "catchment/softswitch/rt/table.hpp"
#include "catchment/softswitch/status.hpp"
#include "state_memory.hpp"
#include "value_codec.hpp"

namespace catchment::softswitch {

/// A bound action and the storage of its arguments. The address is what rows point to.
struct StoredAction {
  using allocator_type = std::pmr::polymorphic_allocator<>;
  explicit StoredAction(allocator_type memory) : data(memory) {}
  /// Takes the place of another action of the same memory, at the same address.
  void become(StoredAction&& other) noexcept {
    data.swap(other.data);
    bound = {other.bound.action, data.data()};
  }

  rt::BoundAction bound;
  std::pmr::vector<std::uint64_t> data;
};

enum class ActionPlace : std::uint8_t { entry, default_action };

/// Checks the call against the table's actions and the action's parameters.
Result<InState<StoredAction>> bind_action(const ProgramInfo& program, const TableInfo& table,
                                          const ActionCall& call, ActionPlace place,
                                          StateMemory& memory);

/// The call with every value in its shortest form and parameters in order.
ActionCall canonical_call(const ProgramInfo& program, const ActionCall& call);

/// nullptr when the program has none of that id.
const ActionInfo* find_action(const ProgramInfo& program, std::uint32_t id);

}  // namespace catchment::softswitch
