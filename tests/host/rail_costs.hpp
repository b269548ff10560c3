// What rails cost, and how operations are split over them, for tests in Python.
#pragma once

#include <pybind11/pybind11.h>

void add_rail_costs(pybind11::module_& module);
