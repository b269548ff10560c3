// The native half of host.collectives.Work, in CPython's own interface: a call of it costs a third
// of pybind11's, and of a short operation such calls are a good part.
#pragma once

#include <Python.h>

#include <cstdint>

#include "catchment_collectives.h"

namespace catchment::host {

// An operation of the C library; all of it is under the GIL.
struct Operation {
  PyObject_HEAD catchment_work* handle;
  // Who owns the arrays' memory: kept until the operation is done.
  PyObject* source;
  PyObject* target;
  Operation* next;  // the one that was started after it, while both are kept (operations.hpp)
  std::uint64_t elements;
  std::int32_t kind;
  std::int32_t type;
  std::int32_t progress;

  // Notes whether it is done; asks the library, and runs no Python.
  bool look();
  // Gives the arrays back, which may run Python.
  void release();
};

// The Python class Operation, which nobody but the class Operations makes; nullptr: an exception.
PyTypeObject* make_operation_type();

}  // namespace catchment::host
