// Moves the state of one switch into another: what COMMIT and RECONCILE_AND_COMMIT are made of.
#pragma once

#include "catchment/softswitch/dataplane.hpp"

namespace catchment::server {

// Makes tables, action profiles, value sets, multicast groups and clone sessions of `to` equal to
// those of `from`. Throws RpcError(INVALID_ARGUMENT) when the program of `to` cannot take an entry;
// `to` is then in between.
void copy_forwarding_state(const softswitch::Dataplane& from, softswitch::Dataplane& to);

// Copies counters, registers and meter configurations that both programs have under the same id
// and (registers) width; cells beyond the shorter array are left out.
void copy_cells(const softswitch::Dataplane& from, softswitch::Dataplane& to);

}  // namespace catchment::server
