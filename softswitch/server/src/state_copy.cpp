#include "state_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "target.hpp"

namespace catchment::server {

namespace {

using softswitch::Dataplane;

void keep(const softswitch::Status& status, const std::string& what) {
  if (!status.ok()) {
    throw invalid_argument("the state cannot be kept: " + what + ": " + status.message());
  }
}

// Takes out of `to` what is there from the start and may have been deleted in `from`.
void remove_initial_entries(Dataplane& to) {
  for (const auto& entry : take(to.read(softswitch::TableEntry{}))) {
    if (!entry.is_const) {
      keep(to.remove(entry), "initial entry of table id " + std::to_string(entry.table_id));
    }
  }
}

void copy_tables(const Dataplane& from, Dataplane& to) {
  remove_initial_entries(to);
  for (const auto& entry : take(from.read(softswitch::TableEntry{}))) {
    if (!entry.is_const && !entry.is_default) {
      keep(to.insert(entry), "entry of table id " + std::to_string(entry.table_id));
    }
  }
  const auto program = to.info();
  for (const auto& table : program->tables) {
    softswitch::TableEntry filter;
    filter.table_id = table.id;
    filter.is_default = true;
    const auto defaults = from.read(filter);
    if (table.const_default || !defaults.ok()) {
      continue;
    }
    for (const auto& entry : defaults.value()) {
      keep(to.modify(entry), "default entry of table '" + table.name + "'");
    }
  }
}

template <class Value>
void copy_all(const Dataplane& from, Dataplane& to, const char* what) {
  for (const auto& value : take(from.read(Value{}))) {
    keep(to.insert(value), what);
  }
}

template <class Info, class Visit>
void for_each_common(const std::vector<Info>& left, const std::vector<Info>& right, Visit visit) {
  for (const Info& info : left) {
    const auto other = std::find_if(right.begin(), right.end(),
                                    [&](const Info& candidate) { return candidate.id == info.id; });
    if (other != right.end() && info.size > 0) {
      visit(info, std::min(info.size, other->size), *other);
    }
  }
}

}  // namespace

void copy_forwarding_state(const Dataplane& from, Dataplane& to) {
  copy_all<softswitch::ProfileMember>(from, to, "action profile member");
  copy_all<softswitch::ProfileGroup>(from, to, "action profile group");
  copy_tables(from, to);
  copy_all<softswitch::MulticastGroup>(from, to, "multicast group");
  copy_all<softswitch::CloneSession>(from, to, "clone session");
  for (const auto& set : take(from.read(softswitch::ValueSetEntry{}))) {
    keep(to.write(set), "value set");
  }
}

void copy_cells(const Dataplane& from, Dataplane& to) {
  const auto old_program = from.info();
  const auto program = to.info();
  for_each_common(old_program->counters, program->counters,
                  [&](const auto& info, std::uint64_t size, const auto&) {
                    if (info.table_id != 0) {
                      return;  // direct: copied with the entries
                    }
                    for (const auto& cell : take(from.read_counter(info.id, std::nullopt))) {
                      if (cell.index < size) {
                        check(to.write_counter(info.id, cell.index, cell.value));
                      }
                    }
                  });
  for_each_common(old_program->registers, program->registers,
                  [&](const auto& info, std::uint64_t size, const auto& other) {
                    if (info.width != other.width) {
                      return;
                    }
                    for (const auto& cell : take(from.read_register(info.id, std::nullopt))) {
                      if (cell.index < size) {
                        check(to.write_register(info.id, cell.index, cell.value));
                      }
                    }
                  });
  for_each_common(old_program->meters, program->meters,
                  [&](const auto& info, std::uint64_t size, const auto&) {
                    if (info.table_id != 0) {
                      return;
                    }
                    for (const auto& cell : take(from.read_meter(info.id, std::nullopt))) {
                      if (cell.index < size) {
                        check(to.write_meter(info.id, cell.index, cell.config));
                      }
                    }
                  });
}

}  // namespace catchment::server
