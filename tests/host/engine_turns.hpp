// Turns of an engine over a port that another process keeps busy, for tests in Python.
#pragma once

#include <pybind11/pybind11.h>

void add_engine_turns(pybind11::module_& module);
