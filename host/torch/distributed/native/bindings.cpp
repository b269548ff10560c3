// The Python module _torch_group: see _torch_group.pyi.
#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backend.hpp"

namespace {

using catchment::torch_group::GroupOptions;
using catchment::torch_group::SwitchBackend;

c10::intrusive_ptr<SwitchBackend> made(int rank, std::uintptr_t group, std::vector<int> workers,
                                       std::optional<int> exponent, bool packed, py::object python,
                                       py::object explain) {
  GroupOptions options{.scaling = exponent ? CATCHMENT_FIXED : CATCHMENT_BLOCK,
                       .exponent = exponent.value_or(0),
                       .packed = packed,
                       .workers = std::move(workers)};
  return c10::make_intrusive<SwitchBackend>(rank, reinterpret_cast<catchment_group*>(group),
                                            std::move(options), std::move(python),
                                            std::move(explain));
}

// Who keeps a backend alive, this call's own argument aside: a Python object is one, whatever
// refers to that.
std::size_t owners(const c10::intrusive_ptr<c10d::Backend>& backend) {
  return backend.use_count() - 1;
}

}  // namespace

PYBIND11_MODULE(_torch_group, module) {
  module.attr("TORCH_VERSION") = TORCH_VERSION;
  module.attr("COLLECTIVES_ABI") = CATCHMENT_COLLECTIVES_ABI;
  py::module_::import("torch.distributed");
  py::class_<SwitchBackend, c10d::Backend, c10::intrusive_ptr<SwitchBackend>>(module,
                                                                              "SwitchBackend")
      .def(py::init(&made), py::kw_only(), py::arg("rank"), py::arg("group"), py::arg("workers"),
           py::arg("exponent"), py::arg("packed"), py::arg("python"), py::arg("explain"))
      .def_property_readonly("python", &SwitchBackend::python);
  module.def("owners", &owners, py::arg("backend"));
}
