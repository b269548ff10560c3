// Faults of ports, for tests without a network.
#pragma once

#include <pybind11/pybind11.h>

namespace catchment::softswitch {

void bind_faults(pybind11::module_& module);

}  // namespace catchment::softswitch
