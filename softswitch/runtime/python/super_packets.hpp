// What packet sockets do with merged UDP, for Python, so that tests can hold it against a model.
#pragma once

#include <pybind11/pybind11.h>

namespace catchment::softswitch {

void bind_super_packets(pybind11::module_& module);

}  // namespace catchment::softswitch
