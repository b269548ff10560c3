// P4Data values (registers, digests) between P4Runtime messages and the runtime's byte strings.
#pragma once

#include <span>
#include <string>

#include "p4/config/v1/p4types.pb.h"
#include "p4/v1/p4data.pb.h"
#include "where.hpp"

namespace catchment::server {

// Returns one scalar (bit, int, bool, serializable enum) as the unsigned byte string of its bits.
// Throws RpcError: INVALID_ARGUMENT when the data has another form than the type, OUT_OF_RANGE when
// it does not fit, UNIMPLEMENTED for types that are not scalar.
std::string decode_scalar(const p4::v1::P4Data& data, const p4::config::v1::P4DataTypeSpec& type,
                          const p4::config::v1::P4TypeInfo& types, const Where& where);

// Returns the value of the type: `scalars` holds one byte string per scalar in declared order, and
// is advanced past those used. Throws RpcError(INTERNAL) when they do not suffice.
p4::v1::P4Data encode_data(std::span<const std::string>& scalars,
                           const p4::config::v1::P4DataTypeSpec& type,
                           const p4::config::v1::P4TypeInfo& types);

}  // namespace catchment::server
