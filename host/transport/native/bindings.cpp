// The Python module host._native; host/_native.pyi has its types.
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "all_reducer_binding.hpp"
#include "binding_values.hpp"
#include "endpoint.hpp"
#include "numbers.hpp"
#include "open_port.hpp"
#include "packed_lanes.hpp"
#include "places.hpp"
#include "shm_port.hpp"
#include "tagged_port.hpp"

namespace py = pybind11;

namespace catchment::host {
namespace {

// How long a wait goes without looking for signals.
constexpr std::chrono::milliseconds kSignalInterval{50};

// A buffer held in place for as long as this lives.
class Pinned {
 public:
  Pinned(const py::object& exporter, bool writable) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(exporter.ptr(), &view_, flags) != 0) throw py::error_already_set();
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { PyBuffer_Release(&view_); }

  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(view_.buf); }
  std::size_t nbytes() const { return static_cast<std::size_t>(view_.len); }
  std::size_t itemsize() const { return static_cast<std::size_t>(view_.itemsize); }
  std::string format() const { return view_.format == nullptr ? "B" : view_.format; }
  std::uint8_t* data() const { return static_cast<std::uint8_t*>(view_.buf); }

 private:
  Py_buffer view_{};
};

bool wait(Request& request, const py::object& timeout) {
  const bool forever = timeout.is_none();
  const double limit = forever ? 0.0 : std::clamp(timeout.cast<double>(), 0.0, 1e9);
  const Nanos until =
      forever ? kNever : monotonic_now() + static_cast<Nanos>(limit * kNanosPerSecond);
  while (!request.done()) {
    const Nanos left = until - monotonic_now();
    if (left <= 0) return false;
    {
      const py::gil_scoped_release release;
      request.wait_for(
          std::min<std::chrono::nanoseconds>(std::chrono::nanoseconds(left), kSignalInterval));
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  return true;
}

// Keeps the buffers of unfinished requests alive, whatever the caller does with its references.
class BoundEndpoint {
 public:
  BoundEndpoint(EndpointConfig config, std::unique_ptr<Port> port, UdpAddress local)
      : process_(getpid()),
        local_(std::move(local)),
        endpoint_(std::make_unique<Endpoint>(std::move(config), std::move(port))) {}
  BoundEndpoint(const BoundEndpoint&) = delete;
  BoundEndpoint& operator=(const BoundEndpoint&) = delete;
  ~BoundEndpoint() {
    if (forked()) {
      // The thread exists in the parent only; its state here can be neither joined nor freed.
      [[maybe_unused]] const Endpoint* const abandoned = endpoint_.release();
      return;
    }
    const py::gil_scoped_release release;
    endpoint_->close(0);
  }

  std::shared_ptr<Request> push(std::uintptr_t address, std::size_t elements, int dtype,
                                int exponent, bool block, py::object keepalive) {
    return keep(usable().push(memory(address, elements, dtype), {exponent, block}),
                std::move(keepalive));
  }
  std::shared_ptr<Request> pull(std::uintptr_t address, std::size_t elements, int dtype, bool block,
                                py::object keepalive) {
    return keep(usable().pull(memory(address, elements, dtype), {0, block}), std::move(keepalive));
  }

  py::object failure() const {
    if (forked()) {
      Failure failure;
      failure.message = "the endpoint belongs to the process that forked this one";
      failure.kind = "closed";
      failure.hint = "make endpoints after fork()";
      failure.fatal = true;
      return to_dict(std::optional(failure));
    }
    return to_dict(endpoint_->failure());
  }

  py::list stalled() const {
    py::list result;
    if (forked()) return result;
    const Nanos now = monotonic_now();
    for (const Stall& stall : endpoint_->stalled()) {
      py::dict entry;
      entry["stream"] = stall.stream;
      entry["seconds"] = static_cast<double>(now - stall.since) / kNanosPerSecond;
      entry["seq"] = stall.seq;
      entry["cause"] = stall.cause;
      result.append(entry);
    }
    return result;
  }

  py::dict stats() const {
    py::dict result = to_dict(endpoint_->stats());
    if (!forked()) result["processor_time"] = seconds(endpoint_->processor_time());
    return result;
  }

  void close(double linger) {
    if (forked()) return;
    const double nanos = std::clamp(linger, 0.0, 60.0) * kNanosPerSecond;
    {
      const py::gil_scoped_release release;
      endpoint_->close(static_cast<Nanos>(nanos));
    }
    kept_.clear();
  }

  std::pair<std::string, int> local() const { return {local_.host, local_.port}; }

 private:
  bool forked() const { return getpid() != process_; }

  Endpoint& usable() {
    if (forked()) throw std::runtime_error("the endpoint belongs to another process");
    return *endpoint_;
  }

  static Memory memory(std::uintptr_t address, std::size_t elements, int dtype) {
    return {reinterpret_cast<std::uint8_t*>(address), elements, static_cast<wire::DataType>(dtype)};
  }

  std::shared_ptr<Request> keep(std::shared_ptr<Request> request, py::object keepalive) {
    std::erase_if(kept_, [](const auto& entry) { return entry.first->done(); });
    kept_.emplace_back(request, std::move(keepalive));
    return request;
  }

  pid_t process_;
  UdpAddress local_;
  std::unique_ptr<Endpoint> endpoint_;
  std::vector<std::pair<std::shared_ptr<Request>, py::object>> kept_;  // under the GIL
};

std::unique_ptr<BoundEndpoint> make(const py::dict& fields) {
  EndpointConfig config = endpoint_config(fields);
  const auto keys = keys_of(config);
  const std::size_t longest = longest_frame(config);
  OpenPort open =
      open_port(fields, longest + (keys.empty() ? 0 : wire::kTagBytes), largest_window(config));
  open.port = with_tags(std::move(open.port), keys, longest);
  return as_os_error([&] {
    return std::make_unique<BoundEndpoint>(std::move(config), std::move(open.port),
                                           std::move(open.local));
  });
}

std::pair<std::uint32_t, std::uint32_t> quantize_buffer(const Pinned& source, int dtype,
                                                        int exponent, int headroom,
                                                        const Pinned& lanes) {
  const auto type = static_cast<wire::DataType>(dtype);
  const std::size_t count = source.nbytes() / item_bytes(type);
  if (lanes.nbytes() < count * wire::kLaneBytes) throw py::value_error("the lanes do not fit");
  const Cut cut = quantize(type, source.data(), count, exponent, headroom, lanes.data());
  return {cut.saturated, cut.nonfinite};
}

std::uint32_t dequantize_buffer(const Pinned& lanes, int exponent, int headroom, int dtype,
                                const Pinned& target) {
  const auto type = static_cast<wire::DataType>(dtype);
  const std::size_t count = lanes.nbytes() / wire::kLaneBytes;
  if (target.nbytes() < count * item_bytes(type)) throw py::value_error("the elements do not fit");
  return dequantize(lanes.data(), count, exponent, headroom, type, target.data());
}

std::pair<std::uint32_t, std::uint32_t> quantize_packed_buffer(const Pinned& source, int dtype,
                                                               int exponent, std::uint32_t workers,
                                                               const Pinned& halves) {
  const auto type = static_cast<wire::DataType>(dtype);
  const std::size_t count = source.nbytes() / item_bytes(type);
  if (halves.nbytes() < count * kHalfBytes) throw py::value_error("the halves do not fit");
  const Cut cut =
      quantize_packed(type, source.data(), count, exponent, HalfRange(workers), halves.data());
  return {cut.saturated, cut.nonfinite};
}

std::uint32_t dequantize_packed_buffer(const Pinned& halves, int exponent, std::uint32_t workers,
                                       int dtype, const Pinned& target) {
  const auto type = static_cast<wire::DataType>(dtype);
  const std::size_t count = halves.nbytes() / kHalfBytes;
  if (target.nbytes() < count * item_bytes(type)) throw py::value_error("the elements do not fit");
  return dequantize_packed(halves.data(), count, exponent, HalfRange(workers), type, target.data());
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  py::register_exception<AttachError>(module, "AttachError");

  py::class_<Pinned>(module, "Pinned")
      .def(py::init<py::object, bool>(), py::arg("exporter"), py::arg("writable"))
      .def_property_readonly("address", &Pinned::address)
      .def_property_readonly("nbytes", &Pinned::nbytes)
      .def_property_readonly("itemsize", &Pinned::itemsize)
      .def_property_readonly("format", &Pinned::format)
      .def_property_readonly("place", [](const Pinned& pinned) {
        return py::make_tuple(pinned.address(), pinned.nbytes(), pinned.itemsize(),
                              pinned.format());
      });

  PyTypeObject* const places = make_places_type();
  if (places == nullptr) throw py::error_already_set();
  module.attr("Places") = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(places));

  py::class_<Request, std::shared_ptr<Request>>(module, "Request")
      .def("wait", &wait, py::arg("timeout"))
      .def_property_readonly("done", &Request::done)
      .def_property_readonly("ok", [](const Request& r) { return r.done() && !r.outcome.failure; })
      .def_property_readonly(
          "failure",
          [](const Request& r) { return r.done() ? to_dict(r.outcome.failure) : py::none(); })
      .def_property_readonly("flags",
                             [](const Request& r) { return r.done() ? r.outcome.flags : 0; })
      .def_property_readonly("max_abs",
                             [](const Request& r) { return r.done() ? r.outcome.max_abs : 0.0; })
      .def_property_readonly("max_raw",
                             [](const Request& r) { return r.done() ? r.outcome.max_raw : 0U; })
      .def_property_readonly("exponent",
                             [](const Request& r) { return r.done() ? r.outcome.exponent : 0; })
      .def_property_readonly("saturated",
                             [](const Request& r) { return r.done() ? r.outcome.saturated : 0U; })
      .def_property_readonly("nonfinite",
                             [](const Request& r) { return r.done() ? r.outcome.nonfinite : 0U; })
      .def_property_readonly("latency", [](const Request& r) {
        return r.done() ? static_cast<double>(r.outcome.latency) / kNanosPerSecond : 0.0;
      });

  py::class_<BoundEndpoint>(module, "Endpoint")
      .def(py::init(&make), py::arg("config"))
      .def("push", &BoundEndpoint::push)
      .def("pull", &BoundEndpoint::pull)
      .def("failure", &BoundEndpoint::failure)
      .def("stalled", &BoundEndpoint::stalled)
      .def("stats", &BoundEndpoint::stats)
      .def("close", &BoundEndpoint::close, py::arg("linger"))
      .def_property_readonly("local", &BoundEndpoint::local);

  bind_all_reducer(module);

  module.def("quantize", &quantize_buffer);
  module.def("dequantize", &dequantize_buffer);
  module.def("quantize_packed", &quantize_packed_buffer);
  module.def("dequantize_packed", &dequantize_packed_buffer);
}

}  // namespace catchment::host
