// The Python classes AllReducer and Reduction of host._native.
#pragma once

#include <pybind11/pybind11.h>

namespace catchment::host {

void bind_all_reducer(pybind11::module_& module);

}  // namespace catchment::host
