// The beginning of the state's memory: what another process finds there to run the program with.
#pragma once

#include <unistd.h>

#include <cstdint>

#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/rt/program.hpp"
#include "gate.hpp"

namespace catchment::softswitch {

inline constexpr std::uint64_t kStateMagic = 0x4554'4154'5348'4354;  // "TCHSTATE" in memory
inline constexpr std::uint32_t kStateVersion = 1;

/// What the switch bound its own instance of the running program to; all of it lies in the memory.
struct SharedProgram {
  int descriptor = -1;  // of the switch: the sealed shared object; -1: this program is its alone
  std::uint64_t inode = 0;
  const rt::Table* const* tables = nullptr;
  const rt::Table* const* value_sets = nullptr;
  const rt::Counter* counters = nullptr;
  const rt::Meter* meters = nullptr;
  const std::uint64_t* register_sizes = nullptr;
  std::uint64_t table_count = 0;
  std::uint64_t value_set_count = 0;
  std::uint64_t counter_count = 0;
  std::uint64_t meter_count = 0;
  std::uint64_t register_count = 0;
  std::uint8_t* arena = nullptr;

  [[nodiscard]] rt::Bindings bindings() const {
    return {{tables, table_count}, {value_sets, value_set_count},    {counters, counter_count},
            {meters, meter_count}, {register_sizes, register_count}, arena};
  }
};

struct SharedState {
  // What never changes.
  std::uint64_t magic = kStateMagic;
  std::uint32_t version = kStateVersion;
  std::uint32_t program_abi = rt::kProgramAbi;
  std::byte* base = nullptr;  // where everybody maps the memory
  std::uint64_t capacity = 0;
  std::int64_t started_ns = 0;  // of the monotonic clock
  std::uint32_t drop_port = 0;
  std::uint32_t max_passes = 0;
  std::uint32_t max_frame_bytes = 0;
  std::uint32_t max_steps = 0;
  rt::ReplicaList* groups = nullptr;
  rt::CloneTarget* sessions = nullptr;
  rt::PortCounters* ports = nullptr;
  rt::Random* random = nullptr;

  GateState gate;
  // Under the lock.
  std::uint64_t epoch = 0;  // of the program; 0: none is loaded
  SharedProgram program;
};

}  // namespace catchment::softswitch
