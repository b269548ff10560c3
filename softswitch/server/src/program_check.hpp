// Does a P4Info describe this compiled program?
#pragma once

#include "catchment/softswitch/description.hpp"
#include "schema.hpp"

namespace catchment::server {

// Throws RpcError(INVALID_ARGUMENT) that names the first difference: an object of the P4Info that
// the program lacks, or has with another key, other parameters, another width or size. Objects that
// only the program has are fine (a P4Info may leave some out).
void check_program(const Schema& schema, const softswitch::ProgramInfo& program);

}  // namespace catchment::server
