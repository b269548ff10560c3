#include "places.hpp"

#include <array>
#include <cstring>
#include <memory>

namespace catchment::host {
namespace {

struct Drop {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
using Owned = std::unique_ptr<PyObject, Drop>;

struct Format {
  Py_ssize_t bytes;
  PyObject* type;  // nullptr: no numbers of this format are taken
};

// What host.transport.buffers knows of arrays.
struct Places {
  PyObject_HEAD PyTypeObject*
      made;  // Buffer: an owner, an address, a number of elements, their type
  std::array<Format, 128> formats;  // of buffers, by their character in PEP 3118
  PyObject* dtypes;                 // of tensors, to types: those that have been met
  // What tensors are asked for; who has the first of them is a tensor.
  PyObject* data_ptr;
  PyObject* dtype;
  PyObject* is_cpu;
  PyObject* is_contiguous;
  PyObject* numel;
};

Places* self_of(PyObject* object) { return reinterpret_cast<Places*>(object); }

// An attribute, without the exception that says that there is none; -1: another exception.
int look_up(PyObject* object, PyObject* name, Owned& found) {
  PyObject* attribute = nullptr;
#if PY_VERSION_HEX >= 0x030D0000
  const int answer = PyObject_GetOptionalAttr(object, name, &attribute);
#else
  const int answer = _PyObject_LookupAttr(object, name, &attribute);
#endif
  found.reset(attribute);
  return answer;
}

PyObject* place(const Places& self, PyObject* owner, Owned address, Owned elements,
                PyObject* type) {
  if (!address || !elements) return nullptr;
  PyObject* const made = self.made->tp_alloc(self.made, 4);
  if (made == nullptr) return nullptr;
  PyTuple_SET_ITEM(made, 0, Py_NewRef(owner));
  PyTuple_SET_ITEM(made, 1, address.release());
  PyTuple_SET_ITEM(made, 2, elements.release());
  PyTuple_SET_ITEM(made, 3, Py_NewRef(type));
  return made;
}

// The type of a buffer's elements; nullptr, without an exception: none that is taken.
PyObject* type_of(const Places& self, const Py_buffer& view) {
  if (view.format == nullptr) return nullptr;
  const char* const form = view.format + std::strspn(view.format, "<=@");
  const auto key = static_cast<unsigned char>(form[0]);
  if (key >= self.formats.size() || form[1] != '\0') return nullptr;
  const Format& format = self.formats[key];
  return format.bytes == view.itemsize ? format.type : nullptr;
}

// Of each: nullptr, with an exception or without one: it is not as wished.

PyObject* place_of_buffer(const Places& self, PyObject* array, bool writable) {
  if (PyObject_CheckBuffer(array) == 0) return nullptr;
  const Owned owner(PyMemoryView_FromObject(array));
  if (!owner) return nullptr;
  const Py_buffer& view = *PyMemoryView_GET_BUFFER(owner.get());
  if ((writable && view.readonly != 0) || PyBuffer_IsContiguous(&view, 'C') == 0) return nullptr;
  PyObject* const type = type_of(self, view);
  if (type == nullptr) return nullptr;
  return place(self, owner.get(), Owned(PyLong_FromVoidPtr(view.buf)),
               Owned(PyLong_FromSsize_t(view.len / view.itemsize)), type);
}

PyObject* place_of_tensor(const Places& self, PyObject* tensor, PyObject* data_ptr) {
  const Owned dtype(PyObject_GetAttr(tensor, self.dtype));
  if (!dtype) return nullptr;
  PyObject* const type = PyDict_GetItemWithError(self.dtypes, dtype.get());
  if (type == nullptr) return nullptr;
  if (const Owned answer(PyObject_GetAttr(tensor, self.is_cpu)); answer.get() != Py_True) {
    return nullptr;
  }
  if (const Owned answer(PyObject_CallMethodNoArgs(tensor, self.is_contiguous));
      answer.get() != Py_True) {
    return nullptr;
  }
  return place(self, tensor, Owned(PyObject_CallNoArgs(data_ptr)),
               Owned(PyObject_CallMethodNoArgs(tensor, self.numel)), type);
}

// Whatever is unusual or wrong is for who called: None, and no exception.
PyObject* find(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  if (count != 2) {
    PyErr_Format(PyExc_TypeError, "find() takes an array and whether it is written, not %zd things",
                 count);
    return nullptr;
  }
  const Places& self = *self_of(object);
  PyObject* const array = given[0];
  PyObject* made = nullptr;
  Owned data_ptr;
  if (const int is_tensor = look_up(array, self.data_ptr, data_ptr); is_tensor == 0) {
    made = place_of_buffer(self, array, given[1] == Py_True);
  } else if (is_tensor > 0) {
    made = place_of_tensor(self, array, data_ptr.get());
  }
  if (made != nullptr) return made;
  if (PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return nullptr;  // Ctrl-C
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

// One entry of the formats: a character and the bytes of an item, and the type that they stand for.
bool take_format(Places& self, PyObject* key, PyObject* type) {
  int character = 0;
  Py_ssize_t bytes = 0;
  if (!PyTuple_Check(key)) {
    PyErr_Format(PyExc_TypeError, "a format is a character and the bytes of an item, not %R", key);
    return false;
  }
  if (!PyArg_ParseTuple(key, "Cn:Places", &character, &bytes)) return false;
  if (character < 0 || static_cast<std::size_t>(character) >= self.formats.size()) {
    PyErr_SetString(PyExc_ValueError, "a format is a character of ASCII");
    return false;
  }
  Format& format = self.formats[static_cast<std::size_t>(character)];
  Py_XSETREF(format.type, Py_NewRef(type));
  format.bytes = bytes;
  return true;
}

bool take_names(Places& self, PyObject* data_ptr) {
  self.data_ptr = Py_NewRef(data_ptr);
  PyUnicode_InternInPlace(&self.data_ptr);
  return (self.dtype = PyUnicode_InternFromString("dtype")) != nullptr &&
         (self.is_cpu = PyUnicode_InternFromString("is_cpu")) != nullptr &&
         (self.is_contiguous = PyUnicode_InternFromString("is_contiguous")) != nullptr &&
         (self.numel = PyUnicode_InternFromString("numel")) != nullptr;
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject* made = nullptr;
  PyObject* formats = nullptr;
  PyObject* data_ptr = nullptr;
  PyObject* dtypes = nullptr;
  if (!PyArg_ParseTuple(arguments, "O!O!UO!:Places", &PyType_Type, &made, &PyDict_Type, &formats,
                        &data_ptr, &PyDict_Type, &dtypes)) {
    return nullptr;
  }
  if (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(made), &PyTuple_Type) == 0) {
    PyErr_Format(PyExc_TypeError, "%R is no class of tuples", made);
    return nullptr;
  }
  Owned object(type->tp_alloc(type, 0));
  if (!object) return nullptr;
  Places& self = *self_of(object.get());
  self.made = reinterpret_cast<PyTypeObject*>(Py_NewRef(made));
  self.dtypes = Py_NewRef(dtypes);
  if (!take_names(self, data_ptr)) return nullptr;
  Py_ssize_t at = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(formats, &at, &key, &value) != 0) {
    if (!take_format(self, key, value)) return nullptr;
  }
  return object.release();
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  Places& self = *self_of(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self.made);
  Py_VISIT(self.dtypes);
  for (Format& format : self.formats) Py_VISIT(format.type);
  return 0;
}

int clear(PyObject* object) {
  Places& self = *self_of(object);
  Py_CLEAR(self.made);
  Py_CLEAR(self.dtypes);
  for (Format& format : self.formats) Py_CLEAR(format.type);
  return 0;
}

void dealloc(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear(object);
  Places& self = *self_of(object);
  for (PyObject* name : {self.data_ptr, self.dtype, self.is_cpu, self.is_contiguous, self.numel}) {
    Py_XDECREF(name);
  }
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"find", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(find)), METH_FASTCALL,
     "Where a contiguous array of numbers lies; None for all that is unusual or refused."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("Finds where arrays lie; see host.transport.buffers.")},
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_methods, methods},
    {0, nullptr},
};

PyType_Spec spec{
    .name = "catchment.host._native.Places",
    .basicsize = sizeof(Places),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

}  // namespace

PyTypeObject* make_places_type() { return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec)); }

}  // namespace catchment::host
