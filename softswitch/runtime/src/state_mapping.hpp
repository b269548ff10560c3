// The memory of a switch's state, in another process than the switch.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/softswitch/status.hpp"
#include "shared_state.hpp"

namespace catchment::softswitch {

/// Mapped once in a process, where the switch has it, for as long as anybody here uses it.
class StateMapping {
 public:
  /// The device and the number of the file that the memory is.
  using Place = std::pair<dev_t, ino_t>;

  static Result<std::shared_ptr<StateMapping>> open(FileDescriptor memory);
  ~StateMapping();
  StateMapping(const StateMapping&) = delete;
  StateMapping& operator=(const StateMapping&) = delete;

  [[nodiscard]] SharedState& state() const { return state_; }
  /// Whether all of these bytes lie in it.
  [[nodiscard]] bool contains(const void* place, std::size_t bytes) const;

 private:
  StateMapping(FileDescriptor memory, Place place, SharedState& state)
      : memory_(std::move(memory)), place_(place), state_(state) {}

  FileDescriptor memory_;
  Place place_;
  SharedState& state_;
};

}  // namespace catchment::softswitch
