// Types of a P4Info, before anything follows them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "p4/config/v1/p4info.pb.h"

namespace catchment::server {

// Throws RpcError(INVALID_ARGUMENT) when a type that is declared, or that of a register or digest,
// names one that is not there, contains itself, or has more parts or bits than a client's message
// could hold.
void check_types(const p4::config::v1::P4Info& info);

// The bits of each scalar in a value of `type`, in order; nothing in place of those that clients
// give in a width of their own (@p4runtime_translation). Only after check_types().
std::vector<std::optional<std::uint32_t>> scalar_widths(const p4::config::v1::P4DataTypeSpec& type,
                                                        const p4::config::v1::P4TypeInfo& types);

}  // namespace catchment::server
