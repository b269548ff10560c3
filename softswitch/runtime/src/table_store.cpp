#include "table_store.hpp"

#include <algorithm>
#include <utility>

namespace catchment::softswitch {

void configure_meter(rt::MeterState& state, const std::optional<MeterConfig>& config,
                     std::uint64_t now_us) {
  state.configured = false;
  if (!config) {
    return;
  }
  const auto bucket = [](std::int64_t rate, std::int64_t burst) {
    const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(0, burst));
    return rt::MeterState::Bucket{static_cast<double>(rate) / 1e6, size, size, 0};
  };
  state.configured = true;
  state.since_us = now_us;
  state.peak = bucket(config->pir, config->pburst);
  state.committed = bucket(config->cir, config->cburst);
}

MeterCounts counts_of(const rt::MeterState& state) {
  const auto value = [&](std::size_t colour) {
    return CounterValue{state.counts[colour].packets, state.counts[colour].bytes};
  };
  return {value(0), value(1), value(2)};
}

void clear_counts(rt::MeterState& state) { std::ranges::fill(state.counts, rt::CounterState{}); }

TableStore::TableStore(const ProgramInfo& program, const TableInfo& info,
                       const rt::TableLayout& layout, ProfileStore* profile, StateMemory& memory,
                       std::uint64_t sequence)
    : program_(program),
      info_(info),
      layout_(layout),
      profile_(profile),
      memory_(memory),
      entries_(layout, memory, sequence),
      member_(make_in<rt::BoundAction>(memory)),
      view_(make_in<rt::Table>(memory)) {
  for (const MatchFieldInfo& field : info.fields) {
    needs_priority_ |= field.kind != MatchKind::exact && field.kind != MatchKind::lpm;
  }
  entries_.index.publish(*view_);
}

Status TableStore::check_writable(const char* verb) const {
  if (info_.const_entries) {
    return {StatusCode::permission_denied,
            std::string(verb) + ": the entries of table " + info_.name + " are const"};
  }
  return {};
}

Status TableStore::check_not_const(const Stored& stored, const char* verb) const {
  if (stored.entry.is_const) {
    return {StatusCode::permission_denied, std::string(verb) + ": this entry of table " +
                                               info_.name + " is declared const by the program"};
  }
  return {};
}

void TableStore::set_meter(Stored& stored, const std::optional<MeterConfig>& config,
                           std::uint64_t now_us) {
  stored.entry.meter = config;
  configure_meter(stored.meter, config, now_us);
  stored.row.meter = &stored.meter;
}

Status TableStore::insert(const TableEntry& entry, std::uint64_t now_us, bool initial) {
  if (entry.is_default) {
    return {StatusCode::invalid_argument,
            "table " + info_.name + ": the default entry is modified, not inserted"};
  }
  if (!initial) {
    if (Status status = check_writable("insert"); !status.ok()) {
      return status;
    }
  }
  auto key = make_key(entry);
  if (!key.ok()) {
    return key.status();
  }
  if (entries_.rows.contains(key.value().identity())) {
    return {StatusCode::already_exists, "table " + info_.name + " has an entry with this key"};
  }
  if (!initial && entries_.rows.size() >= info_.size) {
    return {StatusCode::resource_exhausted,
            "table " + info_.name + " is full (" + std::to_string(info_.size) + " entries)"};
  }
  auto stored = std::make_unique<Stored>(memory_);
  stored->entry = entry;
  stored->entry.meter_counts.reset();
  if (Status status = bind(*stored, entry.action, ActionPlace::entry); !status.ok()) {
    return status;
  }
  stored->key = std::move(key.value());
  stored->entry.match = stored->key.canonical;
  stored->entry.is_const = initial && (info_.const_entries || entry.is_const);
  set_meter(*stored, entry.meter, now_us);
  if (entry.counter) {
    stored->row.packets = entry.counter->packets;
    stored->row.bytes = entry.counter->bytes;
  }
  stored->row.last_hit_us = now_us;
  if (entries_.sequence == kSequences) {
    renumber();
  }
  const Stored& linked = *stored;
  link(std::move(stored), entries_);
  count_uses(linked, 1);
  entries_.index.publish(*view_);
  return {};
}

/// Ranks entries by what their table goes by, then the older before the younger.
std::uint64_t TableStore::rank_of(const Key& key, std::uint64_t sequence) const {
  const std::uint64_t first =
      needs_priority_ ? static_cast<std::uint32_t>(key.priority) : key.prefix_len;
  return (first << 32) | (kSequences - 1 - sequence);
}

/// Numbers the entries from 0 on. Their order stays, and with it that of their ranks.
void TableStore::renumber() {
  entries_.sequence = 0;
  for (Stored* stored : entries_.order) {
    stored->row.rank = rank_of(stored->key, entries_.sequence++);
  }
  entries_.index.publish(*view_);
}

/// Puts an entry among others; if memory ends, those are as before.
void TableStore::link(std::unique_ptr<Stored> stored, Entries& entries) const {
  Stored& entry = *stored;
  entry.shown->ranges.assign(entry.key.ranges.begin(), entry.key.ranges.end());
  entry.row.ranges = entry.shown->ranges.data();
  entry.row.rank = rank_of(entry.key, entries.sequence);
  std::list<Stored*> place{&entry};
  const auto row = entries.rows.emplace(entry.key.identity(), std::move(stored)).first;
  try {
    entries.index.insert(entry.key.key, entry.key.mask, entry.row);
  } catch (...) {
    entries.rows.erase(row);
    throw;
  }
  entry.place = place.begin();
  entries.order.splice(entries.order.end(), place);
  ++entries.sequence;
}

Status TableStore::replace_members(const std::vector<std::vector<FieldMatch>>& members) {
  Entries fresh(layout_, memory_, 0);
  for (const auto& member : members) {
    TableEntry entry;
    entry.match = member;
    entry.priority = needs_priority_ ? 1 : 0;
    auto key = make_key(entry);
    if (!key.ok()) {
      return key.status();
    }
    if (!fresh.rows.contains(key.value().identity())) {
      auto stored = std::make_unique<Stored>(memory_);
      stored->key = std::move(key.value());
      stored->row.action = member_.get();
      link(std::move(stored), fresh);
    }
  }
  entries_ = std::move(fresh);
  entries_.index.publish(*view_);
  return {};
}

Result<TableStore::Stored*> TableStore::find(const TableEntry& entry) const {
  if (entry.is_default && default_ != nullptr) {
    return default_.get();
  }
  auto key = make_key(entry);
  if (!key.ok()) {
    return key.status();
  }
  const auto found = entries_.rows.find(key.value().identity());
  if (found == entries_.rows.end()) {
    return Status(StatusCode::not_found, "table " + info_.name + " has no entry with this key");
  }
  return found->second.get();
}

Status TableStore::modify(const TableEntry& entry, std::uint64_t now_us) {
  if (entry.is_default) {
    return set_default(entry);
  }
  if (Status status = check_writable("modify"); !status.ok()) {
    return status;
  }
  auto found = find(entry);
  if (!found.ok()) {
    return found.status();
  }
  Stored& stored = *found.value();
  if (Status status = check_not_const(stored, "modify"); !status.ok()) {
    return status;
  }
  Stored fresh(memory_);
  fresh.entry.metadata = entry.metadata;
  if (Status status = bind(fresh, entry.action, ActionPlace::entry); !status.ok()) {
    return status;
  }
  count_uses(stored, -1);
  stored.action = std::move(fresh.action);
  stored.one_shot = std::move(fresh.one_shot);
  stored.one_shot_group = std::move(fresh.one_shot_group);
  stored.row.action = fresh.row.action;
  stored.row.group = fresh.row.group;
  stored.entry.action = std::move(fresh.entry.action);
  count_uses(stored, 1);
  stored.entry.controller_metadata = entry.controller_metadata;
  stored.entry.metadata = std::move(fresh.entry.metadata);
  stored.entry.idle_timeout_ns = entry.idle_timeout_ns;
  stored.row.last_hit_us = now_us;
  stored.idle_reported_us = 0;
  set_meter(stored, entry.meter, now_us);
  if (entry.meter_counts) {
    clear_counts(stored.meter);
  }
  if (entry.counter) {
    stored.row.packets = entry.counter->packets;
    stored.row.bytes = entry.counter->bytes;
  }
  return {};
}

Status TableStore::remove(const TableEntry& key) {
  if (key.is_default) {
    return {StatusCode::invalid_argument,
            "table " + info_.name + ": the default entry cannot be deleted"};
  }
  if (Status status = check_writable("delete"); !status.ok()) {
    return status;
  }
  auto found = find(key);
  if (!found.ok()) {
    return found.status();
  }
  Stored& stored = *found.value();
  if (Status status = check_not_const(stored, "delete"); !status.ok()) {
    return status;
  }
  const auto row = entries_.rows.find(stored.key.identity());
  entries_.index.remove(stored.key.key, stored.key.mask, stored.row);
  entries_.index.publish(*view_);
  count_uses(stored, -1);
  entries_.order.erase(stored.place);
  entries_.rows.erase(row);
  return {};
}

Status TableStore::set_default(const TableEntry& entry, bool initial) {
  if (info_.const_default && !initial) {
    return {StatusCode::permission_denied,
            "the default action of table " + info_.name + " is const"};
  }
  const bool reset = std::holds_alternative<std::monostate>(entry.action);
  auto stored = std::make_unique<Stored>(memory_);
  stored->entry.table_id = info_.id;
  stored->entry.is_default = true;
  if (Status status =
          bind(*stored, reset ? initial_default_ : entry.action, ActionPlace::default_action);
      !status.ok()) {
    return status;
  }
  if (initial) {
    initial_default_ = stored->entry.action;
  }
  if (!reset) {
    stored->entry.controller_metadata = entry.controller_metadata;
    stored->entry.metadata = entry.metadata;
    set_meter(*stored, entry.meter, 0);
  }
  if (entry.counter) {
    stored->row.packets = entry.counter->packets;
    stored->row.bytes = entry.counter->bytes;
  } else if (default_ != nullptr && !reset) {
    stored->row.packets = default_->row.packets;
    stored->row.bytes = default_->row.bytes;
  }
  if (default_ != nullptr) {
    count_uses(*default_, -1);
  }
  default_ = std::move(stored);
  count_uses(*default_, 1);
  view_->default_row = &default_->row;
  return {};
}

TableEntry TableStore::describe(const Stored& stored, std::uint64_t now_us) const {
  TableEntry entry = stored.entry;
  entry.table_id = info_.id;
  if (info_.direct_counter_id != 0) {
    entry.counter = CounterValue{stored.row.packets, stored.row.bytes};
  }
  if (info_.direct_meter_id != 0) {
    entry.meter_counts = counts_of(stored.meter);
  }
  if (info_.idle_timeout && !entry.is_default) {
    entry.elapsed_ns = static_cast<std::int64_t>((now_us - stored.row.last_hit_us) * 1000);
  }
  return entry;
}

Status TableStore::read(const TableEntry& filter, std::uint64_t now_us,
                        std::vector<TableEntry>& out) const {
  if (filter.is_default) {
    if (default_ != nullptr) {
      out.push_back(describe(*default_, now_us));
    }
    return {};
  }
  if (!filter.match.empty()) {
    auto found = find(filter);
    if (!found.ok()) {
      return found.status();
    }
    out.push_back(describe(*found.value(), now_us));
    return {};
  }
  for (const Stored* stored : entries_.order) {
    out.push_back(describe(*stored, now_us));
  }
  return {};
}

Status TableStore::write_counter(const TableEntry& key, CounterValue value) {
  if (info_.direct_counter_id == 0) {
    return {StatusCode::invalid_argument, "table " + info_.name + " has no direct counter"};
  }
  auto found = find(key);
  if (!found.ok()) {
    return found.status();
  }
  found.value()->row.packets = value.packets;
  found.value()->row.bytes = value.bytes;
  return {};
}

Status TableStore::write_meter(const TableEntry& key, std::optional<MeterConfig> config,
                               std::uint64_t now_us) {
  if (info_.direct_meter_id == 0) {
    return {StatusCode::invalid_argument, "table " + info_.name + " has no direct meter"};
  }
  auto found = find(key);
  if (!found.ok()) {
    return found.status();
  }
  set_meter(*found.value(), config, now_us);
  return {};
}

Status TableStore::clear_meter_counts(const TableEntry& key) {
  if (info_.direct_meter_id == 0) {
    return {StatusCode::invalid_argument, "table " + info_.name + " has no direct meter"};
  }
  auto found = find(key);
  if (!found.ok()) {
    return found.status();
  }
  clear_counts(found.value()->meter);
  return {};
}

void TableStore::prepare(const DownPorts& down, PortChanges& changes) const {
  for (const Stored* stored : entries_.order) {
    if (stored->one_shot_group != nullptr) {
      changes.emplace_back(stored->one_shot_group.get(), expand_one_shot(*stored, down));
    }
  }
}

void TableStore::expire(std::uint64_t now_us,
                        const std::function<void(const TableEntry&)>& report) {
  if (!info_.idle_timeout) {
    return;
  }
  for (Stored* stored : entries_.order) {
    // Rounded up: a timeout shorter than the clock's step is one all the same.
    const std::int64_t timeout_ns = stored->entry.idle_timeout_ns;
    const auto timeout_us =
        static_cast<std::uint64_t>(timeout_ns / 1000 + (timeout_ns % 1000 != 0));
    const std::uint64_t since = std::max(stored->row.last_hit_us, stored->idle_reported_us);
    if (timeout_us != 0 && now_us >= since + timeout_us) {
      report(describe(*stored, now_us));
      stored->idle_reported_us = now_us;
    }
  }
}

}  // namespace catchment::softswitch
