// Match keys between P4Runtime messages and the runtime's values (tables and value sets).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "catchment/softswitch/entities.hpp"
#include "p4/v1/p4runtime.pb.h"
#include "schema.hpp"
#include "where.hpp"

namespace catchment::server {

using FieldIndex = std::unordered_map<std::uint32_t, const p4config::MatchField*>;
using MatchMessages = google::protobuf::RepeatedPtrField<p4::v1::FieldMatch>;

// Returns the key with every value checked. `owner` names the table or value set in errors.
// Throws RpcError: OUT_OF_RANGE for byte strings that do not fit, INVALID_ARGUMENT for the rest
// (unknown or repeated field, wrong match kind, missing exact field, a don't-care that is not left
// out, bits outside the mask).
std::vector<softswitch::FieldMatch> decode_match(const MatchMessages& match,
                                                 const FieldIndex& fields, const Where& owner);

// Appends the key in canonical form: don't-care fields are left out.
void encode_match(const std::vector<softswitch::FieldMatch>& match, const FieldIndex& fields,
                  MatchMessages& result);

}  // namespace catchment::server
