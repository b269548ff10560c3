// Table entries and their direct counters and meters: writing and reading.
#pragma once

#include "entity_sink.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "target.hpp"

namespace catchment::server {

// All throw RpcError when the request is refused.
void write_table_entry(p4::v1::Update::Type type, const p4::v1::TableEntry& message,
                       Target& target);
void write_direct_counter(p4::v1::Update::Type type, const p4::v1::DirectCounterEntry& message,
                          Target& target);
void write_direct_meter(p4::v1::Update::Type type, const p4::v1::DirectMeterEntry& message,
                        Target& target);

void read_table_entries(const p4::v1::TableEntry& request, const Target& target, EntitySink& sink);
void read_direct_counters(const p4::v1::DirectCounterEntry& request, const Target& target,
                          EntitySink& sink);
void read_direct_meters(const p4::v1::DirectMeterEntry& request, const Target& target,
                        EntitySink& sink);

}  // namespace catchment::server
