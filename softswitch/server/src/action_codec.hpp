// Action calls, and what a table entry does, between P4Runtime messages and the runtime's values.
#pragma once

#include "catchment/softswitch/entities.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "schema.hpp"

namespace catchment::server {

// Returns the call with its parameters checked against the action. Throws RpcError:
// INVALID_ARGUMENT (unknown, missing or repeated parameter), OUT_OF_RANGE (value too wide).
softswitch::ActionCall decode_action(const p4::v1::Action& action, const Schema& schema);

// Returns what an entry of `table` does; monostate when the action is unset. Also throws RpcError:
// INVALID_ARGUMENT when the table does not take this action or this form of action,
// PERMISSION_DENIED when it takes it only (or never) as its default.
softswitch::TableAction decode_table_action(const p4::v1::TableEntry& entry,
                                            const TableSchema& table, const Schema& schema);

void encode_action(const softswitch::ActionCall& call, p4::v1::Action& result);

// Leaves `result` untouched when the action is unset.
void encode_table_action(const softswitch::TableAction& action, p4::v1::TableEntry& result);

// Throws RpcError(INVALID_ARGUMENT) unless the profile lets a member have this weight.
void check_weight(std::int32_t weight, const p4config::ActionProfile& profile,
                  const std::string& where);

}  // namespace catchment::server
