// Memory that ends: a call may be told after how many allocations, on the heap and in the state's
// memory.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <limits>
#include <new>
#include <string>

#include "catchment/softswitch/status.hpp"
#include "state_memory.hpp"

namespace catchment::softswitch {

inline constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();
inline std::uint64_t allocations_left = kEndless;

/// Takes one of the allocations that are left; the one after the last fails, those behind it do
/// not.
inline void take_allocation() {
  if (allocations_left == kEndless) {
    return;
  }
  if (allocations_left-- == 0) {
    throw std::bad_alloc();  // and it is endless again
  }
}

class ScarceMemory final : public StateMemory {
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    take_allocation();
    return StateMemory::do_allocate(bytes, alignment);
  }
};

/// Whether there was enough memory for some work. Throws what the store says against it.
template <class Work>
bool scarce(std::uint64_t allocations, Work work) {
  allocations_left = allocations;
  try {
    const Status status = work();
    allocations_left = kEndless;
    if (!status.ok()) {
      throw pybind11::value_error(status.message());
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// The bytes of a value of 64 bits, as clients give them.
inline std::string bytes_of(std::uint64_t value) {
  std::string bytes(sizeof value, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(value >> (8 * (bytes.size() - 1 - i)));
  }
  return bytes;
}

/// Adds the stores of profiles and of replication to the module.
void bind_stores(pybind11::module_& module);

}  // namespace catchment::softswitch
