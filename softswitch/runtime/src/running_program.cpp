#include "running_program.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "catchment/common/cache_line.hpp"

namespace catchment::softswitch {

RunningProgram::RunningProgram(std::unique_ptr<LoadedProgram> program, StateMemory& memory)
    : program_(std::move(program)),
      info_(std::make_shared<const ProgramInfo>((*program_)->info())),
      layout_((*program_)->layout()),
      memory_(memory),
      arena_(memory, std::max(layout_.arena_bytes, kCacheLine)),
      bound_tables_(&memory),
      bound_value_sets_(&memory),
      bound_counters_(&memory),
      bound_meters_(&memory),
      register_sizes_(&memory) {}

Result<std::unique_ptr<RunningProgram>> RunningProgram::start(
    std::unique_ptr<LoadedProgram> program, StateMemory& memory) {
  std::unique_ptr<RunningProgram> running(new RunningProgram(std::move(program), memory));
  running->make_tables();
  running->make_value_sets();
  for (const CounterInfo& counter : running->info_->counters) {
    running->counters_.emplace_back(memory, counter.table_id == 0 ? counter.size : 0);
  }
  for (const MeterInfo& meter : running->info_->meters) {
    const std::uint64_t size = meter.table_id == 0 ? meter.size : 0;
    running->meters_.push_back(
        {StateArray<rt::MeterState>(memory, size), std::vector<std::optional<MeterConfig>>(size)});
  }
  running->bind();
  if (Status status = running->put_initial_entries(); !status.ok()) {
    return status;
  }
  return running;
}

void RunningProgram::make_tables() {
  for (const ProfileInfo& profile : info_->profiles) {
    std::vector<const TableInfo*> users;
    for (const TableInfo& table : info_->tables) {
      if (table.profile_id == profile.id) {
        users.push_back(&table);
      }
    }
    profiles_.push_back(
        users.empty() ? nullptr : std::make_unique<ProfileStore>(*info_, profile, users, memory_));
  }
  for (std::size_t i = 0; i < info_->tables.size(); ++i) {
    const TableInfo& table = info_->tables[i];
    ProfileStore* profile = nullptr;
    for (const auto& candidate : profiles_) {
      if (candidate != nullptr && candidate->info().id == table.profile_id) {
        profile = candidate.get();
      }
    }
    tables_.push_back(
        std::make_unique<TableStore>(*info_, table, layout_.tables[i], profile, memory_));
  }
}

void RunningProgram::bind() {
  for (const auto& table : tables_) {
    bound_tables_.push_back(&table->view());
  }
  for (const auto& set : value_sets_) {
    bound_value_sets_.push_back(&set->table->view());
  }
  for (const auto& cells : counters_) {
    bound_counters_.push_back({cells.data(), cells.size()});
  }
  for (std::size_t i = 0; i < meters_.size(); ++i) {
    bound_meters_.push_back({meters_[i].states.data(), meters_[i].states.size(),
                             info_->meters[i].unit == CounterUnit::bytes});
  }
  for (const RegisterInfo& info : info_->registers) {
    register_sizes_.push_back(info.size);
  }
  (*program_)->bind(share().bindings());
}

SharedProgram RunningProgram::share() const {
  SharedProgram out;
  struct stat object{};
  // What a program of its own externs keeps is in the switch alone.
  if (!layout_.own_state && fstat(program_->descriptor(), &object) == 0) {
    out.descriptor = program_->descriptor();
    out.inode = object.st_ino;
  }
  out.tables = bound_tables_.data();
  out.table_count = bound_tables_.size();
  out.value_sets = bound_value_sets_.data();
  out.value_set_count = bound_value_sets_.size();
  out.counters = bound_counters_.data();
  out.counter_count = bound_counters_.size();
  out.meters = bound_meters_.data();
  out.meter_count = bound_meters_.size();
  out.register_sizes = register_sizes_.data();
  out.register_count = register_sizes_.size();
  out.arena = arena_.data();
  return out;
}

Status RunningProgram::put_initial_entries() {
  for (const TableEntry& entry : (*program_)->initial_entries()) {
    auto store = table(entry.table_id);
    if (!store.ok()) {
      return store.status();
    }
    Status status = entry.is_default ? store.value()->set_default(entry, true)
                                     : store.value()->insert(entry, 0, true);
    if (!status.ok()) {
      return {StatusCode::internal, "the program's own entries: " + status.message()};
    }
  }
  return {};
}

Result<TableStore*> RunningProgram::table(std::uint32_t id) {
  for (const auto& store : tables_) {
    if (store->info().id == id) {
      return store.get();
    }
  }
  return Status(StatusCode::not_found, "the program has no table " + std::to_string(id));
}

Result<ProfileStore*> RunningProgram::profile(std::uint32_t id) {
  for (const auto& store : profiles_) {
    if (store != nullptr && store->info().id == id) {
      return store.get();
    }
  }
  return Status(StatusCode::not_found,
                "the program has no action profile " + std::to_string(id) + " in use by a table");
}

void RunningProgram::find_strays(StrayFinder& finder) const {
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    finder.look_at("table " + info_->tables[i].name, tables_[i]->view(), layout_.tables[i]);
  }
  for (std::size_t i = 0; i < value_sets_.size(); ++i) {
    finder.look_at("value set " + value_sets_[i]->info.name, value_sets_[i]->table->view(),
                   layout_.value_sets[i]);
  }
  for (const auto& cells : counters_) {
    finder.look_at("counter", cells.data(), cells.size() * sizeof *cells.data());
  }
  for (const MeterStore& meter : meters_) {
    finder.look_at("meter", meter.states.data(), meter.states.size() * sizeof *meter.states.data());
  }
  finder.look_at("registers", arena_.data(), arena_.size());
  const SharedProgram shared = share();
  finder.look_at("list of tables", shared.tables, shared.table_count * sizeof *shared.tables);
  finder.look_at("list of value sets", shared.value_sets,
                 shared.value_set_count * sizeof *shared.value_sets);
  finder.look_at("list of counters", shared.counters,
                 shared.counter_count * sizeof *shared.counters);
  finder.look_at("list of meters", shared.meters, shared.meter_count * sizeof *shared.meters);
  finder.look_at("sizes of registers", shared.register_sizes,
                 shared.register_count * sizeof *shared.register_sizes);
}

void RunningProgram::set_down_ports(const DownPorts& down) {
  PortChanges changes;
  for (const auto& profile : profiles_) {
    if (profile != nullptr) {
      profile->prepare(down, changes);
    }
  }
  for (const auto& table : tables_) {
    table->prepare(down, changes);
  }
  std::vector<DownPorts> copies(profiles_.size() + tables_.size(), down);
  for (auto& [actions, fresh] : changes) {  // from here on nothing needs memory
    actions->take(std::move(fresh));
  }
  for (const auto& profile : profiles_) {
    if (profile != nullptr) {
      profile->set_down_ports(std::move(copies.back()));
    }
    copies.pop_back();
  }
  for (const auto& table : tables_) {
    table->set_down_ports(std::move(copies.back()));
    copies.pop_back();
  }
}

}  // namespace catchment::softswitch
