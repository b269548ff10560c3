// RunningProgram: counters, registers, meters and value sets from the control plane's side.
#include <algorithm>
#include <cstring>

#include "running_program.hpp"

namespace catchment::softswitch {

namespace {

/// Position of the object with this id in one of ProgramInfo's lists.
template <class Info>
Result<std::size_t> position(const std::vector<Info>& infos, std::uint32_t id, const char* kind) {
  const auto found = std::ranges::find(infos, id, &Info::id);
  if (found == infos.end()) {
    return Status(StatusCode::not_found,
                  "the program has no " + std::string(kind) + " " + std::to_string(id));
  }
  return static_cast<std::size_t>(found - infos.begin());
}

/// Cells of one object: its position in its list, and the first and one past the last cell.
struct Cells {
  std::size_t at;
  std::uint64_t first;
  std::uint64_t end;
};

/// The cells that `index` (unset: all) means of the object with this id.
template <class Info>
Result<Cells> cells(const std::vector<Info>& infos, std::uint32_t id, const char* kind,
                    std::optional<std::uint64_t> index) {
  auto at = position(infos, id, kind);
  if (!at.ok()) {
    return at.status();
  }
  const Info& info = infos[at.value()];
  if (!index) {
    return Cells{at.value(), 0, info.size};
  }
  if (*index >= info.size) {
    return Status(StatusCode::out_of_range, info.name + " has " + std::to_string(info.size) +
                                                " cells: no index " + std::to_string(*index));
  }
  return Cells{at.value(), *index, *index + 1};
}

}  // namespace

Result<std::vector<CounterCell>> RunningProgram::read_counter(
    std::uint32_t id, std::optional<std::uint64_t> index) const {
  const auto chosen = cells(info_->counters, id, "counter", index);
  if (!chosen.ok()) {
    return chosen.status();
  }
  const auto& states = counters_[chosen.value().at];
  std::vector<CounterCell> out;
  for (std::uint64_t i = chosen.value().first; i < chosen.value().end; ++i) {
    out.push_back({i, {states[i].packets, states[i].bytes}});
  }
  return out;
}

Status RunningProgram::write_counter(std::uint32_t id, std::optional<std::uint64_t> index,
                                     CounterValue value) {
  const auto chosen = cells(info_->counters, id, "counter", index);
  if (!chosen.ok()) {
    return chosen.status();
  }
  auto& states = counters_[chosen.value().at];
  for (std::uint64_t i = chosen.value().first; i < chosen.value().end; ++i) {
    states[i] = {value.packets, value.bytes};
  }
  return {};
}

Result<std::vector<RegisterCell>> RunningProgram::read_register(
    std::uint32_t id, std::optional<std::uint64_t> index) const {
  const auto chosen = cells(info_->registers, id, "register", index);
  if (!chosen.ok()) {
    return chosen.status();
  }
  const rt::RegisterLayout& layout = layout_.registers[chosen.value().at];
  std::vector<RegisterCell> out;
  for (std::uint64_t i = chosen.value().first; i < chosen.value().end; ++i) {
    const std::uint8_t* cell = arena_.data() + layout.offset + i * layout.stride;
    out.push_back({i, cell_to_bytes(cell, layout.cell_bytes)});
  }
  return out;
}

Status RunningProgram::write_register(std::uint32_t id, std::optional<std::uint64_t> index,
                                      const std::string& value) {
  const auto chosen = cells(info_->registers, id, "register", index);
  if (!chosen.ok()) {
    return chosen.status();
  }
  const RegisterInfo& info = info_->registers[chosen.value().at];
  const rt::RegisterLayout& layout = layout_.registers[chosen.value().at];
  auto words = to_words(value, info.width, info.name);
  if (!words.ok()) {
    return words.status();
  }
  for (std::uint64_t i = chosen.value().first; i < chosen.value().end; ++i) {
    words_to_cell(words.value(), arena_.data() + layout.offset + i * layout.stride,
                  layout.cell_bytes);
  }
  return {};
}

void RunningProgram::renew_registers() { std::memset(arena_.data(), 0, arena_.size()); }

Result<std::vector<MeterCell>> RunningProgram::read_meter(
    std::uint32_t id, std::optional<std::uint64_t> index) const {
  const auto chosen = cells(info_->meters, id, "meter", index);
  if (!chosen.ok()) {
    return chosen.status();
  }
  const MeterStore& store = meters_[chosen.value().at];
  std::vector<MeterCell> out;
  for (std::uint64_t i = chosen.value().first; i < chosen.value().end; ++i) {
    out.push_back({i, store.configs[i], counts_of(store.states[i])});
  }
  return out;
}

Status RunningProgram::write_meter(std::uint32_t id, std::optional<std::uint64_t> index,
                                   std::optional<MeterConfig> config, std::uint64_t now_us) {
  const auto chosen = cells(info_->meters, id, "meter", index);
  if (!chosen.ok()) {
    return chosen.status();
  }
  MeterStore& store = meters_[chosen.value().at];
  for (std::uint64_t i = chosen.value().first; i < chosen.value().end; ++i) {
    store.configs[i] = config;
    configure_meter(store.states[i], config, now_us);
  }
  return {};
}

Status RunningProgram::clear_meter_counts(std::uint32_t id, std::optional<std::uint64_t> index) {
  const auto chosen = cells(info_->meters, id, "meter", index);
  if (!chosen.ok()) {
    return chosen.status();
  }
  MeterStore& store = meters_[chosen.value().at];
  for (std::uint64_t i = chosen.value().first; i < chosen.value().end; ++i) {
    clear_counts(store.states[i]);
  }
  return {};
}

/// A value set is a table of ternary (or range) keys; its layout follows those of the tables.
void RunningProgram::make_value_sets() {
  for (std::size_t i = 0; i < info_->value_sets.size(); ++i) {
    const ValueSetInfo& info = info_->value_sets[i];
    auto set = std::make_unique<ValueSetStore>();
    set->info.id = info.id;
    set->info.name = info.name;
    set->info.fields = info.fields;
    set->info.size = info.size;
    set->info.profile_id = 0;
    set->entry.value_set_id = info.id;
    set->table =
        std::make_unique<TableStore>(*info_, set->info, layout_.value_sets[i], nullptr, memory_);
    value_sets_.push_back(std::move(set));
  }
}

Status RunningProgram::write(const ValueSetEntry& entry) {
  auto at = position(info_->value_sets, entry.value_set_id, "value set");
  if (!at.ok()) {
    return at.status();
  }
  ValueSetStore& set = *value_sets_[at.value()];
  if (entry.members.size() > set.info.size) {
    return {StatusCode::resource_exhausted,
            set.info.name + " holds " + std::to_string(set.info.size) + " members"};
  }
  Status status = set.table->replace_members(entry.members);
  if (status.ok()) {
    set.entry = entry;
  }
  return status;
}

Result<std::vector<ValueSetEntry>> RunningProgram::read(const ValueSetEntry& filter) const {
  std::vector<ValueSetEntry> out;
  for (const auto& set : value_sets_) {
    if (filter.value_set_id == 0 || filter.value_set_id == set->info.id) {
      out.push_back(set->entry);
    }
  }
  if (filter.value_set_id != 0 && out.empty()) {
    return Status(StatusCode::not_found,
                  "the program has no value set " + std::to_string(filter.value_set_id));
  }
  return out;
}

}  // namespace catchment::softswitch
