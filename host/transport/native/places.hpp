// The Python class Places of host._native: where the usual arrays lie, in CPython's own interface.
#pragma once

#include <Python.h>

namespace catchment::host {

// nullptr: an exception.
PyTypeObject* make_places_type();

}  // namespace catchment::host
