// The Python module host._glm; host/_glm.pyi has its types.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encoding.hpp"
#include "libsvm.hpp"
#include "worker.hpp"

namespace py = pybind11;

namespace catchment::glm {
namespace {

template <typename T>
using Array = py::array_t<T, py::array::c_style>;

template <typename T>
std::vector<T> copied(const Array<T>& array) {
  return {array.data(), array.data() + array.size()};
}

template <typename T>
Array<T> array_of(const std::vector<T>& values) {
  return Array<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

std::span<std::int32_t> span_of(Array<std::int32_t>& array) {
  return {array.mutable_data(), static_cast<std::size_t>(array.size())};
}

WorkerConfig config_of(const std::string& loss, int forward_shift,
                       const Array<std::int32_t>& sigmoid) {
  const auto which = loss == "squares"    ? Loss::kSquares
                     : loss == "logistic" ? Loss::kLogistic
                     : loss == "hinge"    ? Loss::kHinge
                                          : throw py::value_error("no loss " + loss);
  return {which, forward_shift, copied(sigmoid)};
}

template <typename Code>
Worker dense_worker(const Array<Code>& codes, const Array<std::int32_t>& labels,
                    const std::string& loss, int forward_shift,
                    const Array<std::int32_t>& sigmoid) {
  if (codes.ndim() != 2) throw py::value_error("codes have two dimensions");
  return {config_of(loss, forward_shift, sigmoid),
          DenseSamples<Code>(copied(codes), static_cast<std::size_t>(codes.shape(1))),
          copied(labels)};
}

Worker sparse_worker(const Array<std::int64_t>& offsets, const Array<std::int32_t>& columns,
                     const Array<std::uint16_t>& codes, std::size_t features,
                     const Array<std::int32_t>& labels, const std::string& loss, int forward_shift,
                     const Array<std::int32_t>& sigmoid) {
  return {config_of(loss, forward_shift, sigmoid),
          SparseSamples(copied(offsets), copied(columns), copied(codes), features), copied(labels)};
}

void epoch(const std::vector<Worker*>& workers, const std::vector<std::int64_t>& ends,
           std::int64_t multiplier, int shift) {
  const py::gil_scoped_release release;
  train_epoch(workers, ends, multiplier, shift);
}

py::tuple parse(const py::buffer& text, std::int32_t base, std::int32_t features) {
  const py::buffer_info info = text.request();
  const std::string_view view(static_cast<const char*>(info.ptr),
                              static_cast<std::size_t>(info.size * info.itemsize));
  SampleLines lines;
  {
    const py::gil_scoped_release release;
    lines = parse_libsvm(view, base, features);
  }
  return py::make_tuple(array_of(lines.labels), array_of(lines.offsets), array_of(lines.columns),
                        array_of(lines.values));
}

template <typename T>
std::span<const T> view_of(const Array<T>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

SparseRows rows_of(const Array<std::int64_t>& offsets, const Array<std::int32_t>& columns,
                   std::size_t features) {
  return {view_of(offsets), view_of(columns), features};
}

py::tuple ranges(const Array<std::int64_t>& offsets, const Array<std::int32_t>& columns,
                 const Array<double>& values, std::size_t features) {
  const Ranges found = feature_ranges(rows_of(offsets, columns, features), view_of(values));
  return py::make_tuple(array_of(found.low), array_of(found.high));
}

Array<std::uint16_t> codes_of_values(const Array<std::int64_t>& offsets,
                                     const Array<std::int32_t>& columns,
                                     const Array<double>& values, const Array<double>& low,
                                     const Array<double>& span, std::uint16_t largest) {
  const SparseRows rows = rows_of(offsets, columns, static_cast<std::size_t>(low.size()));
  return array_of(value_codes(rows, view_of(values), {view_of(low), view_of(span), largest}));
}

py::tuple lay_out_sparse(const Array<std::int64_t>& offsets, const Array<std::int32_t>& columns,
                         const Array<std::uint16_t>& codes, const Array<std::int64_t>& order,
                         const Array<std::uint16_t>& of_zero, std::uint16_t bias) {
  const SparseRows rows = rows_of(offsets, columns, static_cast<std::size_t>(of_zero.size()));
  const Layout layout{view_of(order), view_of(of_zero), bias};
  const std::vector<std::int64_t> ends = sparse_offsets(rows, view_of(codes), layout);
  Array<std::int32_t> at(ends.back());
  Array<std::uint16_t> laid_out(ends.back());
  sparse_codes(rows, view_of(codes), layout, span_of(at),
               {laid_out.mutable_data(), static_cast<std::size_t>(laid_out.size())});
  return py::make_tuple(array_of(ends), at, laid_out);
}

template <typename Code>
void lay_out_dense(const Array<std::int64_t>& offsets, const Array<std::int32_t>& columns,
                   const Array<std::uint16_t>& codes, const Array<std::int64_t>& order,
                   const Array<std::uint16_t>& of_zero, std::uint16_t bias, Array<Code> rows) {
  const SparseRows from = rows_of(offsets, columns, static_cast<std::size_t>(of_zero.size()));
  dense_codes<Code>(from, view_of(codes), {view_of(order), view_of(of_zero), bias},
                    {rows.mutable_data(), static_cast<std::size_t>(rows.size())});
}

template <typename Code>
void define_dense(py::module_& module) {
  module.def("dense_codes", &lay_out_dense<Code>, py::arg("offsets"), py::arg("columns"),
             py::arg("codes"), py::arg("order"), py::arg("of_zero"), py::arg("bias"),
             py::arg("rows").noconvert());
}

}  // namespace

PYBIND11_MODULE(_glm, module) {
  py::class_<Worker>(module, "Worker")
      .def_static("dense", &dense_worker<std::uint8_t>, py::arg("codes").noconvert(),
                  py::arg("labels"), py::arg("loss"), py::arg("forward_shift"), py::arg("sigmoid"))
      .def_static("dense", &dense_worker<std::uint16_t>, py::arg("codes").noconvert(),
                  py::arg("labels"), py::arg("loss"), py::arg("forward_shift"), py::arg("sigmoid"))
      .def_static("sparse", &sparse_worker, py::arg("offsets"), py::arg("columns"),
                  py::arg("codes"), py::arg("features"), py::arg("labels"), py::arg("loss"),
                  py::arg("forward_shift"), py::arg("sigmoid"))
      .def(
          "forward",
          [](Worker& worker, std::size_t first, Array<std::int32_t> activations) {
            worker.forward(first, span_of(activations));
          },
          py::arg("first"), py::arg("activations").noconvert())
      .def(
          "backward",
          [](Worker& worker, std::size_t first, Array<std::int32_t> activations,
             std::int64_t multiplier) { worker.backward(first, span_of(activations), multiplier); },
          py::arg("first"), py::arg("activations").noconvert(), py::arg("multiplier"))
      .def(
          "resume",
          [](Worker& worker, Array<std::int32_t> weights) { worker.resume(span_of(weights)); },
          py::arg("weights"))
      .def(
          "weigh",
          [](Worker& worker, const Array<std::int32_t>& importance) {
            worker.weigh(copied(importance));
          },
          py::arg("importance"))
      .def("update", &Worker::update, py::arg("first"), py::arg("last"), py::arg("shift"))
      .def(
          "take_gradient",
          [](Worker& worker, int shift, Array<std::int32_t> gradient) {
            worker.take_gradient(shift, span_of(gradient));
          },
          py::arg("shift"), py::arg("gradient").noconvert())
      .def(
          "apply",
          [](Worker& worker, Array<std::int32_t> gradient, int shift) {
            worker.apply(span_of(gradient), shift);
          },
          py::arg("gradient").noconvert(), py::arg("shift"))
      .def_property_readonly("weights",
                             [](Worker& worker) {
                               const auto weights = worker.weights();
                               return Array<std::int32_t>(static_cast<py::ssize_t>(weights.size()),
                                                          weights.data());
                             })
      .def_property_readonly("saturated", &Worker::saturated);
  module.def("train_epoch", &epoch, py::arg("workers"), py::arg("ends"), py::arg("multiplier"),
             py::arg("shift"));

  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const SyntaxError& error) {
      const py::object why = py::make_tuple(error.line, std::string(error.what()));
      PyErr_SetObject(PyExc_ValueError, why.ptr());
    }
  });
  module.def("feature_ranges", &ranges, py::arg("offsets"), py::arg("columns"), py::arg("values"),
             py::arg("features"));
  module.def("value_codes", &codes_of_values, py::arg("offsets"), py::arg("columns"),
             py::arg("values"), py::arg("low"), py::arg("span"), py::arg("largest"));
  module.def("sparse_codes", &lay_out_sparse, py::arg("offsets"), py::arg("columns"),
             py::arg("codes"), py::arg("order"), py::arg("of_zero"), py::arg("bias"));
  define_dense<std::uint8_t>(module);
  define_dense<std::uint16_t>(module);
  module.def("parse_libsvm", &parse, py::arg("text"), py::arg("base"), py::arg("features"));
}

}  // namespace catchment::glm
