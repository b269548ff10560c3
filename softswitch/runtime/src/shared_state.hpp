// The beginning of the state's memory: what another process finds there to run the program with.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "catchment/shm/bell.hpp"
#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/rt/program.hpp"
#include "gate.hpp"

namespace catchment::softswitch {

inline constexpr std::uint64_t kStateMagic = 0x4554'4154'5348'4354;  // "TCHSTATE" in memory
inline constexpr std::uint32_t kStateVersion = 3;

/// Bytes of headers that a program may add to the longest frame, whoever runs it.
inline constexpr std::size_t kHeaderRoom = 4096;

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

/// A port whose peer has been let in: where others put the frames that leave by it.
struct SharedRing {
  std::byte* rings = nullptr;   // shm::Header; nullptr: these frames are the switch's to send
  std::uint64_t epoch = 0;      // of the peer's attachment
  bool through_switch = false;  // all frames of this port pass through the switch: it has faults
  std::array<char, shm::kBellName> bell{};  // that wakes the peer; ends with a zero
  std::uint32_t processor = 0;  // 1 and the one that the peer was last seen on; 0: not yet
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
  SharedRing* rings = nullptr;  // by port, rt::kPorts of them; what they hold: under the lock

  GateState gate;
  // Under the lock.
  std::uint64_t epoch = 0;  // of the program; 0: none is loaded
  SharedProgram program;
};

}  // namespace catchment::softswitch
