// Indexed state: counters, meters, registers, value sets, and which digests are sent.
#pragma once

#include "entity_sink.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "target.hpp"

namespace catchment::server {

// All throw RpcError when the request is refused. An index that is left out means every cell.
void write_counter(p4::v1::Update::Type type, const p4::v1::CounterEntry& message, Target& target);
void write_meter(p4::v1::Update::Type type, const p4::v1::MeterEntry& message, Target& target);
void write_register(p4::v1::Update::Type type, const p4::v1::RegisterEntry& message,
                    Target& target);
void write_value_set(p4::v1::Update::Type type, const p4::v1::ValueSetEntry& message,
                     Target& target);
void write_digest(p4::v1::Update::Type type, const p4::v1::DigestEntry& message, Target& target);

// An id of 0 reads every object of the kind.
void read_counters(const p4::v1::CounterEntry& request, const Target& target, EntitySink& sink);
void read_meters(const p4::v1::MeterEntry& request, const Target& target, EntitySink& sink);
void read_registers(const p4::v1::RegisterEntry& request, const Target& target, EntitySink& sink);
void read_value_sets(const p4::v1::ValueSetEntry& request, const Target& target, EntitySink& sink);
void read_digests(const p4::v1::DigestEntry& request, const Target& target, EntitySink& sink);

}  // namespace catchment::server
