#include "operation.hpp"

#include <structmember.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>

namespace catchment::host {
namespace {

// Longest time in the library without a look at Python's signals.
constexpr std::int64_t kSlice = 100'000'000;
constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

std::int64_t monotonic_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Operation* self_of(PyObject* object) { return reinterpret_cast<Operation*>(object); }

// Waits in the library without the GIL.  A daemon's thread that the interpreter's end finds here is
// unwound where it takes the GIL again, so that nothing in this function may have a destructor.
std::int32_t wait_without_gil(catchment_work* handle, std::int64_t limit) {
  std::int32_t progress = CATCHMENT_RUNS;
  Py_BEGIN_ALLOW_THREADS;
  progress = catchment_work_wait(handle, limit);
  Py_END_ALLOW_THREADS;
  return progress;
}

PyObject* settle(PyObject* object, PyObject* nanos) {
  Operation* const self = self_of(object);
  std::int64_t left = kForever;
  std::int64_t until = kForever;
  if (!Py_IsNone(nanos)) {
    int overflow = 0;
    const long long given = PyLong_AsLongLongAndOverflow(nanos, &overflow);
    if (given == -1 && PyErr_Occurred() != nullptr) return nullptr;
    left = overflow > 0 ? kForever : std::max(overflow < 0 ? 0LL : given, 0LL);
    const std::int64_t now = monotonic_now();
    until = left > kForever - now ? kForever : now + left;
  }
  while (self->progress == CATCHMENT_RUNS) {
    const std::int32_t progress = wait_without_gil(self->handle, std::min(left, kSlice));
    if (progress != CATCHMENT_RUNS) {
      self->progress = progress;
      self->release();
      break;
    }
    if (PyErr_CheckSignals() != 0) return nullptr;
    if (until == kForever) continue;
    left = until - monotonic_now();
    if (left <= 0) Py_RETURN_FALSE;
  }
  Py_RETURN_TRUE;
}

PyObject* settled(PyObject* object, PyObject*) {
  Operation* const self = self_of(object);
  if (!self->look()) Py_RETURN_FALSE;
  self->release();
  Py_RETURN_TRUE;
}

PyObject* asked(PyObject* object, void*) {
  const Operation& self = *self_of(object);
  return Py_BuildValue("(iKi)", self.kind, static_cast<unsigned long long>(self.elements),
                       self.type);
}

PyObject* handle(PyObject* object, void*) { return PyLong_FromVoidPtr(self_of(object)->handle); }

int traverse(PyObject* object, visitproc visit, void* arg) {
  Operation* const self = self_of(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->source);
  Py_VISIT(self->target);
  return 0;
}

// Of a cycle that is garbage.  The communicator is in it, or forgot the operation since it is done:
// in both cases the library writes nothing any more.
int clear(PyObject* object) {
  self_of(object)->release();
  return 0;
}

void dealloc(PyObject* object) {
  Operation* const self = self_of(object);
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  catchment_work_free(self->handle);
  self->release();
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"_settle", settle, METH_O, "Wait for so many nanoseconds, None: for as long as it takes."},
    {"_settled", settled, METH_NOARGS, "Whether it is done."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"_asked", asked, nullptr, "Kind, elements and type of the call.", nullptr},
    {"_handle", handle, nullptr, "The catchment_work.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"_progress", T_INT, offsetof(Operation, progress), READONLY, "A catchment_progress."},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("An operation of the C library, and who owns its arrays.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec spec{
    .name = "catchment.host._collectives.Operation",
    .basicsize = sizeof(Operation),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

}  // namespace

bool Operation::look() {
  if (progress == CATCHMENT_RUNS) progress = catchment_work_done(handle);
  return progress != CATCHMENT_RUNS;
}

void Operation::release() {
  Py_CLEAR(source);
  Py_CLEAR(target);
}

PyTypeObject* make_operation_type() {
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace catchment::host
