// The Python module host._collectives; host/_collectives.pyi has its types.
#include <Python.h>

#include "catchment_collectives.h"
#include "operation.hpp"
#include "operations.hpp"

namespace {

PyModuleDef definition{
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_collectives",
    .m_doc = "What a short operation of host.collectives costs most in Python.",
    .m_size = -1,  // its classes are this process's
    .m_methods = nullptr,
    .m_slots = nullptr,
    .m_traverse = nullptr,
    .m_clear = nullptr,
    .m_free = nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__collectives() {
  if (const int found = catchment_collectives_abi(); found != CATCHMENT_COLLECTIVES_ABI) {
    PyErr_Format(PyExc_ImportError,
                 "libcatchment_collectives.so has ABI %d, host._collectives needs %d: "
                 "run `make native`",
                 found, CATCHMENT_COLLECTIVES_ABI);
    return nullptr;
  }
  PyObject* const module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  PyTypeObject* const operation = catchment::host::make_operation_type();
  PyTypeObject* const operations =
      operation == nullptr ? nullptr : catchment::host::make_operations_type(operation);
  if (operations == nullptr || PyModule_AddType(module, operation) != 0 ||
      PyModule_AddType(module, operations) != 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
