// Types of a P4Info, before anything follows them.
#pragma once

#include <cstdint>
#include <optional>

#include "p4/config/v1/p4types.pb.h"

namespace catchment::server {

// Throws RpcError(INVALID_ARGUMENT) when a type contains itself, or more parts than a client's
// message could hold.
void check_types(const p4::config::v1::P4TypeInfo& types);

// The bits of a value of `type`; nothing where a client gives others (@p4runtime_translation), or
// the P4Info does not say. Only after check_types().
std::optional<std::uint64_t> bits_of(const p4::config::v1::P4DataTypeSpec& type,
                                     const p4::config::v1::P4TypeInfo& types);

}  // namespace catchment::server
