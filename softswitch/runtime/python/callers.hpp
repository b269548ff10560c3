// The switch's program in a process of its own, for tests.
#pragma once

#include <pybind11/pybind11.h>

namespace catchment::softswitch {

void bind_callers(pybind11::module_& module);

}  // namespace catchment::softswitch
