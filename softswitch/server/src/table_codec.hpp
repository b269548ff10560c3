// Table entries between P4Runtime messages and the runtime's values.
#pragma once

#include "catchment/softswitch/entities.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "schema.hpp"

namespace catchment::server {

// Returns what identifies an entry: table, match, priority, is_default_action. Throws RpcError when
// it is not a valid key of the table; other fields of the message are not looked at.
softswitch::TableEntry decode_key(const p4::v1::TableEntry& message, const TableSchema& table);

// Returns the whole entry for an insert or modify. Throws RpcError as decode_key does, and for
// fields that this table does not have (counter, meter, idle timeout).
softswitch::TableEntry decode_entry(const p4::v1::TableEntry& message, const TableSchema& table,
                                    const Schema& schema);

// Returns the message of an entry that was read. Counter, meter and idle time are included when
// the request has them set.
p4::v1::TableEntry encode_entry(const softswitch::TableEntry& entry, const TableSchema& table,
                                const p4::v1::TableEntry& request);

// Fills in the fields that identify an entry.
void encode_key(const softswitch::TableEntry& entry, const TableSchema& table,
                p4::v1::TableEntry& result);

softswitch::CounterValue decode_counter(const p4::v1::CounterData& data);
void encode_counter(const softswitch::CounterValue& value, p4::v1::CounterData& result);
// `spec` is the meter's: which fields a config may have depends on its type.
softswitch::MeterConfig decode_meter(const p4::v1::MeterConfig& config,
                                     const p4config::MeterSpec& spec);
void encode_meter(const softswitch::MeterConfig& config, p4::v1::MeterConfig& result);

// Throws RpcError unless all counts are zero: they can be cleared, not set.
void check_cleared(const p4::v1::MeterCounterData& data);
void encode_meter_counts(const softswitch::MeterCounts& counts, p4::v1::MeterCounterData& result);

}  // namespace catchment::server
