// A compiled program with everything it runs on: tables, profiles, counters, meters, registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "program_loader.hpp"
#include "shared_state.hpp"
#include "state_memory.hpp"
#include "strays.hpp"
#include "table_store.hpp"

namespace catchment::softswitch {

class RunningProgram {
 public:
  /// Builds the state, binds the program to it and puts in the program's own entries.
  static Result<std::unique_ptr<RunningProgram>> start(std::unique_ptr<LoadedProgram> program,
                                                       StateMemory& memory);

  [[nodiscard]] const ProgramInfo& info() const { return *info_; }
  [[nodiscard]] std::shared_ptr<const ProgramInfo> shared_info() const { return info_; }
  void process(std::span<const rt::InputFrame> frames, rt::Engine& engine) {
    (*program_)->process(frames, engine);
  }

  Result<TableStore*> table(std::uint32_t id);
  Result<ProfileStore*> profile(std::uint32_t id);
  [[nodiscard]] const std::vector<std::unique_ptr<TableStore>>& tables() const { return tables_; }
  [[nodiscard]] const std::vector<std::unique_ptr<ProfileStore>>& profiles() const {
    return profiles_;
  }

  Result<std::vector<CounterCell>> read_counter(std::uint32_t id,
                                                std::optional<std::uint64_t> index) const;
  Status write_counter(std::uint32_t id, std::optional<std::uint64_t> index, CounterValue value);
  Result<std::vector<RegisterCell>> read_register(std::uint32_t id,
                                                  std::optional<std::uint64_t> index) const;
  Status write_register(std::uint32_t id, std::optional<std::uint64_t> index,
                        const std::string& value);
  Result<std::vector<MeterCell>> read_meter(std::uint32_t id,
                                            std::optional<std::uint64_t> index) const;
  Status write_meter(std::uint32_t id, std::optional<std::uint64_t> index,
                     std::optional<MeterConfig> config, std::uint64_t now_us);
  Status clear_meter_counts(std::uint32_t id, std::optional<std::uint64_t> index);
  Status write(const ValueSetEntry& entry);
  Result<std::vector<ValueSetEntry>> read(const ValueSetEntry& filter) const;
  /// Sets all registers to their initial values.
  void renew_registers();
  void set_down_ports(const DownPorts& down);
  /// What another process needs to run the program, too.
  [[nodiscard]] SharedProgram share() const;
  void find_strays(StrayFinder& finder) const;

 private:
  RunningProgram(std::unique_ptr<LoadedProgram> program, StateMemory& memory);
  void make_tables();
  void make_value_sets();
  void bind();
  Status put_initial_entries();

  struct MeterStore {
    StateArray<rt::MeterState> states;
    std::vector<std::optional<MeterConfig>> configs;
  };
  struct ValueSetStore {
    TableInfo info;  // a value set is an internal table whose hit is membership
    std::unique_ptr<TableStore> table;
    ValueSetEntry entry;
  };

  std::unique_ptr<LoadedProgram> program_;
  std::shared_ptr<const ProgramInfo> info_;
  const rt::Layout& layout_;
  StateMemory& memory_;
  StateArray<std::uint8_t> arena_;
  std::vector<std::unique_ptr<ProfileStore>> profiles_;
  std::vector<std::unique_ptr<TableStore>> tables_;
  std::vector<std::unique_ptr<ValueSetStore>> value_sets_;
  std::vector<StateArray<rt::CounterState>> counters_;
  std::vector<MeterStore> meters_;
  // What the program is bound to, in the order of ProgramInfo's lists.
  std::pmr::vector<const rt::Table*> bound_tables_;
  std::pmr::vector<const rt::Table*> bound_value_sets_;
  std::pmr::vector<rt::Counter> bound_counters_;
  std::pmr::vector<rt::Meter> bound_meters_;
  std::pmr::vector<std::uint64_t> register_sizes_;
};

}  // namespace catchment::softswitch
