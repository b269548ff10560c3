// The binary interface between the runtime and a compiled program: what the shared object
// implements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "catchment/softswitch/description.hpp"
#include "catchment/softswitch/entities.hpp"
#include "catchment/softswitch/rt/engine.hpp"
#include "catchment/softswitch/rt/state.hpp"
#include "catchment/softswitch/rt/table.hpp"

namespace catchment::softswitch::rt {

/// Changes whenever anything in rt/, description.hpp or entities.hpp changes shape.
inline constexpr std::uint32_t kProgramAbi = 9;

/// How the compiler packed a table's key; in the order of TableInfo::fields.
struct TableLayout {
  std::uint32_t key_words = 0;
  std::uint32_t range_fields = 0;
  bool exact = false;
  std::vector<KeyField> fields;
};

/// The place of a register array in the arena; in the order of ProgramInfo::registers.
struct RegisterLayout {
  std::uint64_t offset = 0;  // bytes
  std::uint64_t stride = 0;
  std::uint32_t cell_bytes = 0;
};

struct Layout {
  std::vector<TableLayout> tables;
  std::vector<TableLayout> value_sets;
  std::vector<RegisterLayout> registers;
  std::uint64_t arena_bytes = 0;
  bool own_state = false;  // the program has externs of its own, which keep what they like
};

/// The control side's objects, in the order of ProgramInfo's lists; they outlive the program.
struct Bindings {
  std::span<const Table* const> tables;
  std::span<const Table* const> value_sets;
  std::span<const Counter> counters;  // direct ones have no cells
  std::span<const Meter> meters;
  std::span<const std::uint64_t> register_sizes;
  std::uint8_t* arena = nullptr;  // 64-byte aligned, zero
};

class Program {
 public:
  virtual ~Program() = default;
  [[nodiscard]] virtual const ProgramInfo& info() const = 0;
  [[nodiscard]] virtual const Layout& layout() const = 0;
  /// `const entries`, `entries` and default actions.
  [[nodiscard]] virtual std::vector<TableEntry> initial_entries() const = 0;
  virtual void bind(const Bindings& bindings) = 0;
  virtual void process(std::span<const InputFrame> frames, Engine& engine) = 0;
};

}  // namespace catchment::softswitch::rt

extern "C" {
/// The shared object's two symbols. The caller owns the program.
using CatchmentAbiFunction = std::uint32_t (*)();
using CatchmentProgramFunction = catchment::softswitch::rt::Program* (*)();
}
