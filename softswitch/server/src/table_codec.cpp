#include "table_codec.hpp"

#include <string>

#include "action_codec.hpp"
#include "match_codec.hpp"
#include "rpc_error.hpp"

namespace catchment::server {

namespace {

std::string in_table(const TableSchema& table) { return "table '" + table.name() + "': "; }

void check_default_key(const p4::v1::TableEntry& message, const TableSchema& table) {
  if (message.match_size() != 0 || message.priority() != 0) {
    throw invalid_argument(in_table(table) +
                           "the default entry has neither match fields nor a priority");
  }
}

void check_priority(const p4::v1::TableEntry& message, const TableSchema& table) {
  if (table.needs_priority && message.priority() <= 0) {
    throw invalid_argument(in_table(table) + "priority " + std::to_string(message.priority()) +
                           " is not positive; entries with ternary, range or optional fields "
                           "need one (larger wins)");
  }
  if (!table.needs_priority && message.priority() != 0) {
    throw invalid_argument(in_table(table) + "priority " + std::to_string(message.priority()) +
                           " is set, but no field is ternary, range or optional");
  }
}

void decode_resources(const p4::v1::TableEntry& message, const TableSchema& table,
                      softswitch::TableEntry& entry) {
  if (message.has_counter_data()) {
    if (table.counter == nullptr) {
      throw invalid_argument(in_table(table) + "counter_data is set, but it has no direct counter");
    }
    entry.counter = decode_counter(message.counter_data());
  }
  if (message.has_meter_config()) {
    if (table.meter == nullptr) {
      throw invalid_argument(in_table(table) + "meter_config is set, but it has no direct meter");
    }
    entry.meter = decode_meter(message.meter_config(), table.meter->spec());
  }
  if (message.has_meter_counter_data()) {
    if (table.meter == nullptr) {
      throw invalid_argument(in_table(table) +
                             "meter_counter_data is set, but it has no direct meter");
    }
    check_cleared(message.meter_counter_data());
    entry.meter_counts.emplace();
  }
}

void decode_idle_timeout(const p4::v1::TableEntry& message, const TableSchema& table,
                         softswitch::TableEntry& entry) {
  if (message.has_time_since_last_hit()) {
    throw invalid_argument(in_table(table) + "time_since_last_hit can be read, not written");
  }
  if (message.idle_timeout_ns() == 0) {
    return;
  }
  if (message.is_default_action()) {
    throw invalid_argument(in_table(table) + "the default entry has no idle timeout");
  }
  if (table.info->idle_timeout_behavior() != p4config::Table::NOTIFY_CONTROL) {
    throw invalid_argument(in_table(table) +
                           "idle_timeout_ns is set, but the table does not support idle timeouts");
  }
  if (message.idle_timeout_ns() < 0) {
    throw invalid_argument(in_table(table) + "idle_timeout_ns is negative");
  }
  entry.idle_timeout_ns = message.idle_timeout_ns();
}

}  // namespace

softswitch::TableEntry decode_key(const p4::v1::TableEntry& message, const TableSchema& table) {
  softswitch::TableEntry entry;
  entry.table_id = message.table_id();
  entry.is_default = message.is_default_action();
  if (entry.is_default) {
    check_default_key(message, table);
    return entry;
  }
  check_priority(message, table);
  entry.priority = message.priority();
  entry.match = decode_match(message.match(), table.fields, {"table", table.name()});
  return entry;
}

softswitch::TableEntry decode_entry(const p4::v1::TableEntry& message, const TableSchema& table,
                                    const Schema& schema) {
  softswitch::TableEntry entry = decode_key(message, table);
  entry.action = decode_table_action(message, table, schema);
  entry.controller_metadata = message.controller_metadata();
  entry.metadata = message.metadata();
  decode_resources(message, table, entry);
  decode_idle_timeout(message, table, entry);
  return entry;
}

void encode_key(const softswitch::TableEntry& entry, const TableSchema& table,
                p4::v1::TableEntry& result) {
  result.set_table_id(entry.table_id);
  result.set_is_default_action(entry.is_default);
  result.set_priority(entry.priority);
  encode_match(entry.match, table.fields, *result.mutable_match());
}

p4::v1::TableEntry encode_entry(const softswitch::TableEntry& entry, const TableSchema& table,
                                const p4::v1::TableEntry& request) {
  p4::v1::TableEntry result;
  encode_key(entry, table, result);
  encode_table_action(entry.action, result);
  result.set_is_const(entry.is_const);
  result.set_controller_metadata(entry.controller_metadata);
  result.set_metadata(entry.metadata);
  result.set_idle_timeout_ns(entry.idle_timeout_ns);
  if (request.has_counter_data() && table.counter != nullptr) {
    encode_counter(entry.counter.value_or(softswitch::CounterValue{}),
                   *result.mutable_counter_data());
  }
  if (request.has_meter_config() && entry.meter) {
    encode_meter(*entry.meter, *result.mutable_meter_config());
  }
  if (request.has_meter_counter_data() && entry.meter_counts) {
    encode_meter_counts(*entry.meter_counts, *result.mutable_meter_counter_data());
  }
  if (request.has_time_since_last_hit() && entry.elapsed_ns) {
    result.mutable_time_since_last_hit()->set_elapsed_ns(*entry.elapsed_ns);
  }
  return result;
}

softswitch::CounterValue decode_counter(const p4::v1::CounterData& data) {
  if (data.packet_count() < 0 || data.byte_count() < 0) {
    throw invalid_argument("a counter value is negative");
  }
  return {static_cast<std::uint64_t>(data.packet_count()),
          static_cast<std::uint64_t>(data.byte_count())};
}

void encode_counter(const softswitch::CounterValue& value, p4::v1::CounterData& result) {
  result.set_packet_count(static_cast<std::int64_t>(value.packets));
  result.set_byte_count(static_cast<std::int64_t>(value.bytes));
}

softswitch::MeterConfig decode_meter(const p4::v1::MeterConfig& config,
                                     const p4config::MeterSpec& spec) {
  using Spec = p4config::MeterSpec;
  if (config.cir() < 0 || config.cburst() < 0 || config.pir() < 0 || config.pburst() < 0) {
    throw invalid_argument("a meter's rate or burst is negative");
  }
  if (spec.type() != Spec::TWO_RATE_THREE_COLOR &&
      (config.pir() != config.cir() || config.pburst() != config.cburst())) {
    throw invalid_argument("a single-rate meter: pir and pburst must equal cir and cburst");
  }
  if (config.pir() < config.cir()) {
    throw invalid_argument("a meter's peak rate (pir " + std::to_string(config.pir()) +
                           ") is below its committed rate (cir " + std::to_string(config.cir()) +
                           ")");
  }
  if (config.eburst() != 0) {
    if (spec.type() != Spec::SINGLE_RATE_THREE_COLOR) {
      throw invalid_argument("eburst is set, but only single-rate three-colour meters have one");
    }
    throw unimplemented("meter eburst: this switch marks with two rates");
  }
  return {config.cir(), config.cburst(), config.pir(), config.pburst()};
}

void check_cleared(const p4::v1::MeterCounterData& data) {
  for (const auto* colour : {&data.green(), &data.yellow(), &data.red()}) {
    if (colour->packet_count() != 0 || colour->byte_count() != 0) {
      throw invalid_argument("a meter's counts per colour can be set back to zero, nothing else");
    }
  }
}

void encode_meter_counts(const softswitch::MeterCounts& counts, p4::v1::MeterCounterData& result) {
  encode_counter(counts.green, *result.mutable_green());
  encode_counter(counts.yellow, *result.mutable_yellow());
  encode_counter(counts.red, *result.mutable_red());
}

void encode_meter(const softswitch::MeterConfig& config, p4::v1::MeterConfig& result) {
  result.set_cir(config.cir);
  result.set_cburst(config.cburst);
  result.set_pir(config.pir);
  result.set_pburst(config.pburst);
}

}  // namespace catchment::server
