// The native half of host.collectives.Communicator.
#pragma once

#include <Python.h>

namespace catchment::host {

// The Python class Operations, which makes objects of the class `operation` or of one below it;
// nullptr: an exception.
PyTypeObject* make_operations_type(PyTypeObject* operation);

}  // namespace catchment::host
