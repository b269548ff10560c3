#include "table_entities.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "match_codec.hpp"
#include "table_codec.hpp"

namespace catchment::server {

namespace {

using p4::v1::Update;

// The entry in force, for what a request leaves unchanged.
softswitch::TableEntry existing(const softswitch::TableEntry& key, const TableSchema& table,
                                const Target& target) {
  softswitch::TableEntry filter;
  filter.table_id = key.table_id;
  filter.match = key.match;
  filter.priority = key.priority;
  filter.is_default = key.is_default;
  for (auto& entry : take(target.dataplane().read(filter))) {
    // A key without fields also selects every other entry of that priority.
    if (entry.is_default == key.is_default && entry.priority == key.priority &&
        entry.match.size() == key.match.size()) {
      return std::move(entry);
    }
  }
  throw not_found("table '" + table.name() + "' has no entry with this key");
}

void check_const(Update::Type type, const p4::v1::TableEntry& message, const TableSchema& table) {
  const std::string& name = table.name();
  if (message.is_const()) {
    throw invalid_argument("table '" + name + "': is_const cannot be set by a client");
  }
  if (message.is_default_action()) {
    if (type != Update::MODIFY) {
      throw invalid_argument("table '" + name +
                             "': the default entry always exists; it can only be modified");
    }
    if (table.info->const_default_action_id() != 0) {
      throw permission_denied("table '" + name + "': its default action is const");
    }
    return;
  }
  if (table.info->is_const_table() && (type != Update::MODIFY || message.has_action())) {
    throw permission_denied("table '" + name + "': its entries are const");
  }
  if (type == Update::INSERT && table.fields.empty()) {
    throw invalid_argument("table '" + name +
                           "' has no key, so it has no entries but the default one");
  }
  if (type == Update::INSERT && !message.has_action()) {
    throw invalid_argument("table '" + name + "': an entry needs an action");
  }
}

const TableSchema& table_with_counter(std::uint32_t id, const Target& target) {
  const TableSchema& table = target.schema().table(id);
  if (table.counter == nullptr) {
    throw invalid_argument("table '" + table.name() + "' has no direct counter");
  }
  return table;
}

const TableSchema& table_with_meter(std::uint32_t id, const Target& target) {
  const TableSchema& table = target.schema().table(id);
  if (table.meter == nullptr) {
    throw invalid_argument("table '" + table.name() + "' has no direct meter");
  }
  return table;
}

void require_modify(Update::Type type, const char* kind) {
  if (type != Update::MODIFY) {
    throw invalid_argument(std::string(kind) + " entries can only be modified");
  }
}

// Returns the entries with this match, whatever their priority.
std::vector<softswitch::TableEntry> select_any_priority(p4::v1::TableEntry request,
                                                        const TableSchema& table,
                                                        const Target& target) {
  request.set_priority(1);
  const auto text = [&](const std::vector<softswitch::FieldMatch>& match) {
    std::map<std::uint32_t, std::string> fields;
    google::protobuf::RepeatedPtrField<p4::v1::FieldMatch> messages;
    encode_match(match, table.fields, messages);
    for (const auto& message : messages) {
      fields.emplace(message.field_id(), message.SerializeAsString());
    }
    return fields;
  };
  const auto wanted = text(decode_key(request, table).match);
  softswitch::TableEntry filter;
  filter.table_id = table.info->preamble().id();
  auto entries = take(target.dataplane().read(filter));
  std::erase_if(entries, [&](const auto& entry) { return text(entry.match) != wanted; });
  return entries;
}

// Returns the entries that a read request's table, key and default flag select.
std::vector<softswitch::TableEntry> select(const p4::v1::TableEntry& request,
                                           const TableSchema& table, const Target& target) {
  if (request.match_size() != 0 && table.needs_priority && request.priority() == 0 &&
      !request.is_default_action()) {
    return select_any_priority(request, table, target);
  }
  softswitch::TableEntry filter;
  filter.table_id = table.info->preamble().id();
  filter.is_default = request.is_default_action();
  if (filter.is_default || request.match_size() != 0) {
    filter = decode_key(request, table);
    filter.table_id = table.info->preamble().id();  // the request's may be 0: every table
  }
  auto result = target.dataplane().read(filter);
  if (!result.ok() && result.status().code() == softswitch::StatusCode::not_found) {
    return {};
  }
  return take(std::move(result));
}

bool wanted(const softswitch::TableEntry& entry, const p4::v1::TableEntry& request) {
  if (entry.is_default != request.is_default_action() ||
      (request.priority() != 0 && entry.priority != request.priority()) ||
      (request.controller_metadata() != 0 &&
       entry.controller_metadata != request.controller_metadata()) ||
      (!request.metadata().empty() && entry.metadata != request.metadata())) {
    return false;
  }
  const std::uint32_t action_id = request.action().action().action_id();
  if (action_id == 0) {
    return true;
  }
  const auto* call = std::get_if<softswitch::ActionCall>(&entry.action);
  return call != nullptr && call->action_id == action_id;
}

// Calls visit(entry, table) for every entry selected; table id 0 selects every table.
template <class Visitor>
void for_each_entry(const p4::v1::TableEntry& request, const Target& target, Visitor visit) {
  const auto visit_table = [&](const TableSchema& table) {
    for (const auto& entry : select(request, table, target)) {
      if (wanted(entry, request)) {
        visit(entry, table);
      }
    }
  };
  if (request.table_id() != 0) {
    visit_table(target.schema().table(request.table_id()));
    return;
  }
  if (request.match_size() != 0) {
    throw invalid_argument("a read of all tables (table_id 0) cannot have match fields");
  }
  for (const auto& info : target.schema().info().tables()) {
    visit_table(target.schema().table(info.preamble().id()));
  }
}

}  // namespace

void write_table_entry(Update::Type type, const p4::v1::TableEntry& message, Target& target) {
  const TableSchema& table = target.schema().table(message.table_id());
  check_const(type, message, table);
  if (type == Update::DELETE) {
    return check(target.dataplane().remove(decode_key(message, table)));
  }
  auto entry = decode_entry(message, table, target.schema());
  if (type == Update::INSERT) {
    return check(target.dataplane().insert(entry));
  }
  if (!message.has_action() && !entry.is_default) {
    const auto old = existing(entry, table, target);
    if (table.info->is_const_table() || old.is_const) {
      if (entry.counter) {
        check(target.dataplane().write_direct_counter(entry, *entry.counter));
      }
      if (table.meter != nullptr) {
        check(target.dataplane().write_direct_meter(entry, entry.meter));
      }
      if (entry.meter_counts) {
        check(target.dataplane().clear_direct_meter_counts(entry));
      }
      return;
    }
    entry.action = old.action;
  }
  check(target.dataplane().modify(entry));
}

void write_direct_counter(Update::Type type, const p4::v1::DirectCounterEntry& message,
                          Target& target) {
  require_modify(type, "direct counter");
  const TableSchema& table = table_with_counter(message.table_entry().table_id(), target);
  const auto key = decode_key(message.table_entry(), table);
  if (!message.has_data()) {
    existing(key, table, target);
    return;
  }
  check(target.dataplane().write_direct_counter(key, decode_counter(message.data())));
}

void write_direct_meter(Update::Type type, const p4::v1::DirectMeterEntry& message,
                        Target& target) {
  require_modify(type, "direct meter");
  const TableSchema& table = table_with_meter(message.table_entry().table_id(), target);
  const auto key = decode_key(message.table_entry(), table);
  std::optional<softswitch::MeterConfig> config;
  if (message.has_config()) {
    config = decode_meter(message.config(), table.meter->spec());
  }
  if (message.has_counter_data()) {
    check_cleared(message.counter_data());
  }
  check(target.dataplane().write_direct_meter(key, config));
  if (message.has_counter_data()) {
    check(target.dataplane().clear_direct_meter_counts(key));
  }
}

void read_table_entries(const p4::v1::TableEntry& request, const Target& target, EntitySink& sink) {
  if (request.table_id() != 0 && request.has_time_since_last_hit()) {
    const TableSchema& table = target.schema().table(request.table_id());
    if (request.is_default_action() ||
        table.info->idle_timeout_behavior() != p4config::Table::NOTIFY_CONTROL) {
      throw invalid_argument("table '" + table.name() +
                             "': time_since_last_hit is set, but this entry has no idle timeout");
    }
  }
  for_each_entry(request, target, [&](const auto& entry, const TableSchema& table) {
    *sink.add().mutable_table_entry() = encode_entry(entry, table, request);
  });
}

void read_direct_counters(const p4::v1::DirectCounterEntry& request, const Target& target,
                          EntitySink& sink) {
  const auto& key = request.table_entry();
  if (key.table_id() != 0) {
    table_with_counter(key.table_id(), target);
  }
  bool found = false;
  for_each_entry(key, target, [&](const auto& entry, const TableSchema& table) {
    if (table.counter != nullptr) {
      found = true;
      auto& message = *sink.add().mutable_direct_counter_entry();
      encode_key(entry, table, *message.mutable_table_entry());
      encode_counter(entry.counter.value_or(softswitch::CounterValue{}), *message.mutable_data());
    }
  });
  if (!found && key.match_size() != 0) {
    throw not_found("table '" + target.schema().table(key.table_id()).name() +
                    "' has no entry with this key");
  }
}

void read_direct_meters(const p4::v1::DirectMeterEntry& request, const Target& target,
                        EntitySink& sink) {
  const auto& key = request.table_entry();
  if (key.table_id() != 0) {
    table_with_meter(key.table_id(), target);
  }
  bool found = false;
  for_each_entry(key, target, [&](const auto& entry, const TableSchema& table) {
    if (table.meter != nullptr) {
      found = true;
      auto& message = *sink.add().mutable_direct_meter_entry();
      encode_key(entry, table, *message.mutable_table_entry());
      if (entry.meter) {
        encode_meter(*entry.meter, *message.mutable_config());
      }
      if (request.has_counter_data()) {
        encode_meter_counts(entry.meter_counts.value_or(softswitch::MeterCounts{}),
                            *message.mutable_counter_data());
      }
    }
  });
  if (!found && key.match_size() != 0) {
    throw not_found("table '" + target.schema().table(key.table_id()).name() +
                    "' has no entry with this key");
  }
}

}  // namespace catchment::server
