#pragma once

#include "catchment_collectives.h"
#include "operation.hpp"
#include "payload.hpp"

namespace catchment::host {

// The first thing that is wrong with a call, or nullptr; a caller that came by Python has checked
// it before.
const char* wrong_with(const catchment_call& call, const Layout& layout, bool packed);

// The call with which nothing is wrong, as the engines take it.
Call asked_by(const catchment_call& call);

}  // namespace catchment::host
