// A Python object that C++ may let go of on any thread.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

namespace catchment::torch_group {

namespace py = pybind11;

class Held {
 public:
  explicit Held(py::object object) : object_(std::move(object)) {}
  ~Held() {
    if (Py_IsInitialized() == 0) {
      object_.release();
      return;
    }
    const py::gil_scoped_acquire gil;
    object_ = py::object();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // The caller holds the GIL.
  const py::object& get() const { return object_; }

 private:
  py::object object_;
};

}  // namespace catchment::torch_group
