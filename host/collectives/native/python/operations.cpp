#include "operations.hpp"

#include <utility>

#include "operation.hpp"

namespace catchment::host {
namespace {

PyTypeObject* base = nullptr;

// A communicator's operations that are not done, and those that nobody has looked at since: a
// caller may drop its Work at any time, but the arrays have to live until the library has left
// them.  All of it is under the GIL.
struct Operations {
  PyObject_HEAD catchment_group* group;  // which the communicator opens and frees
  PyTypeObject* made;
  // The oldest leads to the latest; each is kept by the list.
  Operation* first;
  Operation* last;
};

Operations* self_of(PyObject* object) { return reinterpret_cast<Operations*>(object); }

PyObject* as_object(Operation* operation) { return reinterpret_cast<PyObject*>(operation); }

void keep(Operations& self, Operation* operation) {
  Py_INCREF(as_object(operation));
  (self.first == nullptr ? self.first : self.last->next) = operation;
  self.last = operation;
}

void forget_first(Operations& self) {
  Operation* const first = self.first;
  self.first = std::exchange(first->next, nullptr);
  if (self.first == nullptr) self.last = nullptr;
  // Both may run Python, and that call start(): the list is as it should be by now.
  first->release();
  Py_DECREF(as_object(first));
}

// One number that Python gives; false: an exception.
template <typename Number>
bool read(PyObject* given, Number& number) {
  const long long value = PyLong_AsLongLong(given);
  if (value == -1 && PyErr_Occurred() != nullptr) return false;
  if (!std::in_range<Number>(value)) {
    PyErr_Format(PyExc_OverflowError, "%lld does not fit into a call of the library", value);
    return false;
  }
  number = static_cast<Number>(value);
  return true;
}

bool read(PyObject* given, void*& address) {
  address = PyLong_AsVoidPtr(given);
  return address != nullptr || PyErr_Occurred() == nullptr;
}

// The fields of a tuple, behind `skipped` others; false: an exception.
template <typename... Numbers>
bool read_fields(PyObject* tuple, Py_ssize_t skipped, Numbers&... numbers) {
  constexpr Py_ssize_t kCount = sizeof...(Numbers);
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != skipped + kCount) {
    PyErr_Format(PyExc_TypeError, "a call of the library needs a tuple of %zd, not %R",
                 skipped + kCount, tuple);
    return false;
  }
  Py_ssize_t at = skipped;
  return (read(PyTuple_GET_ITEM(tuple, at++), numbers) && ...);
}

bool read_call(PyObject* const* given, catchment_call& call) {
  void* source = nullptr;
  std::uint64_t elements = 0;
  std::int32_t type = 0;
  if (!read(given[0], call.kind) || !read_fields(given[1], 1, source, call.elements, call.type) ||
      !read_fields(given[2], 1, call.target, elements, type) ||
      !read_fields(given[3], 0, call.priority, call.timeout_ns, call.tag, call.root, call.step,
                   call.block, call.blocks, call.stride) ||
      !read_fields(given[4], 0, call.reduction, call.scaling, call.exponent, call.packed)) {
    return false;
  }
  call.source = source;
  return true;
}

PyObject* start(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  if (count != 5) {
    PyErr_Format(PyExc_TypeError, "start() takes 5 arguments, not %zd", count);
    return nullptr;
  }
  Operations& self = *self_of(object);
  catchment_call call{};
  if (!read_call(given, call)) return nullptr;
  if (catchment_group_forked(self.group) != 0) Py_RETURN_NONE;
  // It is made first: once the library has the arrays, nothing may fail before they are kept.
  PyObject* const made = self.made->tp_alloc(self.made, 0);
  if (made == nullptr) return nullptr;
  PyObject_GC_UnTrack(made);  // it is no operation yet
  Operation* const operation = reinterpret_cast<Operation*>(made);
  operation->kind = call.kind;
  operation->elements = call.elements;
  operation->type = call.type;
  operation->source = Py_NewRef(PyTuple_GET_ITEM(given[1], 0));
  operation->target = Py_NewRef(PyTuple_GET_ITEM(given[2], 0));
  Py_BEGIN_ALLOW_THREADS;
  operation->handle = catchment_group_start(self.group, &call);
  Py_END_ALLOW_THREADS;
  PyObject_GC_Track(made);
  keep(self, operation);
  while (self.first != nullptr && self.first->look()) forget_first(self);
  return made;
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject* names) {
  static const char* kNames[] = {"group", "made", nullptr};
  PyObject* group = nullptr;
  PyTypeObject* made = nullptr;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "OO!:Operations", const_cast<char**>(kNames),
                                   &group, &PyType_Type, &made)) {
    return nullptr;
  }
  void* const handle = PyLong_AsVoidPtr(group);
  if (handle == nullptr) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_ValueError, "there is no group at 0");
    return nullptr;
  }
  if (PyType_IsSubtype(made, base) == 0) {
    PyErr_Format(PyExc_TypeError, "%R is no class of operations", made);
    return nullptr;
  }
  PyObject* const object = type->tp_alloc(type, 0);
  if (object == nullptr) return nullptr;
  self_of(object)->group = static_cast<catchment_group*>(handle);
  Py_INCREF(made);
  self_of(object)->made = made;
  return object;
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  Operations& self = *self_of(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self.made);
  for (Operation* each = self.first; each != nullptr; each = each->next) Py_VISIT(as_object(each));
  return 0;
}

int clear(PyObject* object) {
  Operations& self = *self_of(object);
  while (self.first != nullptr) forget_first(self);
  Py_CLEAR(self.made);
  return 0;
}

void dealloc(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"start", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(start)), METH_FASTCALL,
     "Start a call: kind, source, target, options, numbers.  None: in a forked process."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("A communicator's operations, kept until they are done.")},
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_methods, methods},
    {0, nullptr},
};

PyType_Spec spec{
    .name = "catchment.host._collectives.Operations",
    .basicsize = sizeof(Operations),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

}  // namespace

PyTypeObject* make_operations_type(PyTypeObject* operation) {
  base = operation;
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace catchment::host
