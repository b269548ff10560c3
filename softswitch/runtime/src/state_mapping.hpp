// The memory of a switch's state, in another process than the switch.
#pragma once

#include <cstddef>
#include <memory>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/softswitch/status.hpp"
#include "shared_state.hpp"

namespace catchment::softswitch {

/// Mapped once in a process, where the switch has it, for as long as anybody here uses it.
class StateMapping {
 public:
  static Result<std::shared_ptr<StateMapping>> open(FileDescriptor memory);
  ~StateMapping();
  StateMapping(const StateMapping&) = delete;
  StateMapping& operator=(const StateMapping&) = delete;

  [[nodiscard]] SharedState& state() const { return state_; }
  /// Whether all of these bytes lie in it.
  [[nodiscard]] bool contains(const void* place, std::size_t bytes) const;

 private:
  StateMapping(FileDescriptor memory, SharedState& state)
      : memory_(std::move(memory)), state_(state) {}

  FileDescriptor memory_;
  SharedState& state_;
};

}  // namespace catchment::softswitch
