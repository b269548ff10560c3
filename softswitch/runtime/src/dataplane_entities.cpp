// Dataplane: tables, profiles, replication and state, each under the lock.
#include "dataplane_impl.hpp"

namespace catchment::softswitch {

namespace {

/// Runs `action` on what `found` holds, or passes its error on.
template <class T, class Action>
Status with(Result<T> found, Action action) {
  return found.ok() ? action(found.value()) : found.status();
}

}  // namespace

// Tables ------------------------------------------------------------------------------------------

Status Dataplane::insert(const TableEntry& entry) {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  return with(impl_->program->table(entry.table_id),
              [&](TableStore* table) { return table->insert(entry, impl_->now_us()); });
}

Status Dataplane::modify(const TableEntry& entry) {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  return with(impl_->program->table(entry.table_id),
              [&](TableStore* table) { return table->modify(entry, impl_->now_us()); });
}

Status Dataplane::remove(const TableEntry& key) {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  return with(impl_->program->table(key.table_id),
              [&](TableStore* table) { return table->remove(key); });
}

Result<std::vector<TableEntry>> Dataplane::read(const TableEntry& filter) const {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  std::vector<TableEntry> out;
  const std::uint64_t now = impl_->now_us();
  if (filter.table_id == 0) {
    for (const auto& table : impl_->program->tables()) {
      if (Status status = table->read(filter, now, out); !status.ok()) {
        return status;
      }
    }
    return out;
  }
  Status status = with(impl_->program->table(filter.table_id),
                       [&](TableStore* table) { return table->read(filter, now, out); });
  if (!status.ok()) {
    return status;
  }
  return out;
}

Status Dataplane::write_direct_counter(const TableEntry& key, CounterValue value) {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  return with(impl_->program->table(key.table_id),
              [&](TableStore* table) { return table->write_counter(key, value); });
}

Status Dataplane::write_direct_meter(const TableEntry& key, std::optional<MeterConfig> config) {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  return with(impl_->program->table(key.table_id),
              [&](TableStore* table) { return table->write_meter(key, config, impl_->now_us()); });
}

Status Dataplane::clear_direct_meter_counts(const TableEntry& key) {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  return with(impl_->program->table(key.table_id),
              [&](TableStore* table) { return table->clear_meter_counts(key); });
}

// Action profiles ---------------------------------------------------------------------------------

#define CATCHMENT_PROFILE_OPERATION(VERB, ENTITY)                              \
  Status Dataplane::VERB(const ENTITY& entity) {                               \
    const Gate::Control lock(impl_->gate);                                     \
    if (impl_->program == nullptr) {                                           \
      return Impl::not_loaded();                                               \
    }                                                                          \
    return with(impl_->program->profile(entity.profile_id),                    \
                [&](ProfileStore* profile) { return profile->VERB(entity); }); \
  }
CATCHMENT_PROFILE_OPERATION(insert, ProfileMember)
CATCHMENT_PROFILE_OPERATION(modify, ProfileMember)
CATCHMENT_PROFILE_OPERATION(remove, ProfileMember)
CATCHMENT_PROFILE_OPERATION(insert, ProfileGroup)
CATCHMENT_PROFILE_OPERATION(modify, ProfileGroup)
CATCHMENT_PROFILE_OPERATION(remove, ProfileGroup)
#undef CATCHMENT_PROFILE_OPERATION

Result<std::vector<ProfileMember>> Dataplane::read(const ProfileMember& filter) const {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  if (filter.profile_id != 0) {
    auto profile = impl_->program->profile(filter.profile_id);
    return profile.ok() ? profile.value()->members(filter.member_id) : profile.status();
  }
  std::vector<ProfileMember> out;
  for (const auto& profile : impl_->program->profiles()) {
    if (profile != nullptr) {
      auto members = profile->members(0);
      out.insert(out.end(), members.value().begin(), members.value().end());
    }
  }
  return out;
}

Result<std::vector<ProfileGroup>> Dataplane::read(const ProfileGroup& filter) const {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  if (filter.profile_id != 0) {
    auto profile = impl_->program->profile(filter.profile_id);
    return profile.ok() ? profile.value()->groups(filter.group_id) : profile.status();
  }
  std::vector<ProfileGroup> out;
  for (const auto& profile : impl_->program->profiles()) {
    if (profile != nullptr) {
      auto groups = profile->groups(0);
      out.insert(out.end(), groups.value().begin(), groups.value().end());
    }
  }
  return out;
}

void Dataplane::set_port_up(std::uint32_t port, bool up) {
  const Gate::Control lock(impl_->gate);
  DownPorts down = impl_->down_ports;
  if (up) {
    down.erase(port);
  } else {
    down.insert(port);
  }
  if (impl_->program != nullptr) {
    impl_->program->set_down_ports(down);
  }
  impl_->down_ports.swap(down);
}

// Replication engine ------------------------------------------------------------------------------

#define CATCHMENT_REPLICATION_OPERATION(VERB, ENTITY) \
  Status Dataplane::VERB(const ENTITY& entity) {      \
    const Gate::Control lock(impl_->gate);            \
    return impl_->replication.VERB(entity);           \
  }
CATCHMENT_REPLICATION_OPERATION(insert, MulticastGroup)
CATCHMENT_REPLICATION_OPERATION(modify, MulticastGroup)
CATCHMENT_REPLICATION_OPERATION(remove, MulticastGroup)
CATCHMENT_REPLICATION_OPERATION(insert, CloneSession)
CATCHMENT_REPLICATION_OPERATION(modify, CloneSession)
CATCHMENT_REPLICATION_OPERATION(remove, CloneSession)
#undef CATCHMENT_REPLICATION_OPERATION

Result<std::vector<MulticastGroup>> Dataplane::read(const MulticastGroup& filter) const {
  const Gate::Control lock(impl_->gate);
  return impl_->replication.groups(filter.group_id);
}

Result<std::vector<CloneSession>> Dataplane::read(const CloneSession& filter) const {
  const Gate::Control lock(impl_->gate);
  return impl_->replication.sessions(filter.session_id);
}

// State -------------------------------------------------------------------------------------------

Result<std::vector<CounterCell>> Dataplane::read_counter(std::uint32_t counter_id,
                                                         std::optional<std::uint64_t> index) const {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  return impl_->program->read_counter(counter_id, index);
}

Status Dataplane::write_counter(std::uint32_t counter_id, std::optional<std::uint64_t> index,
                                CounterValue value) {
  const Gate::Control lock(impl_->gate);
  return impl_->program == nullptr ? Impl::not_loaded()
                                   : impl_->program->write_counter(counter_id, index, value);
}

Result<std::vector<RegisterCell>> Dataplane::read_register(
    std::uint32_t register_id, std::optional<std::uint64_t> index) const {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  return impl_->program->read_register(register_id, index);
}

Status Dataplane::write_register(std::uint32_t register_id, std::optional<std::uint64_t> index,
                                 const std::string& value) {
  const Gate::Control lock(impl_->gate);
  return impl_->program == nullptr ? Impl::not_loaded()
                                   : impl_->program->write_register(register_id, index, value);
}

Result<std::vector<MeterCell>> Dataplane::read_meter(std::uint32_t meter_id,
                                                     std::optional<std::uint64_t> index) const {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  return impl_->program->read_meter(meter_id, index);
}

Status Dataplane::write_meter(std::uint32_t meter_id, std::optional<std::uint64_t> index,
                              std::optional<MeterConfig> config) {
  const Gate::Control lock(impl_->gate);
  return impl_->program == nullptr
             ? Impl::not_loaded()
             : impl_->program->write_meter(meter_id, index, config, impl_->now_us());
}

Status Dataplane::clear_meter_counts(std::uint32_t meter_id, std::optional<std::uint64_t> index) {
  const Gate::Control lock(impl_->gate);
  return impl_->program == nullptr ? Impl::not_loaded()
                                   : impl_->program->clear_meter_counts(meter_id, index);
}

Status Dataplane::write(const ValueSetEntry& entry) {
  const Gate::Control lock(impl_->gate);
  return impl_->program == nullptr ? Impl::not_loaded() : impl_->program->write(entry);
}

Result<std::vector<ValueSetEntry>> Dataplane::read(const ValueSetEntry& filter) const {
  const Gate::Control lock(impl_->gate);
  if (impl_->program == nullptr) {
    return Impl::not_loaded();
  }
  return impl_->program->read(filter);
}

}  // namespace catchment::softswitch
