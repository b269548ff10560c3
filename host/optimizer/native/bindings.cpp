// The Python module host._optimizer; host/_optimizer.pyi has its types.
#include <fcntl.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <iterator>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checksum.hpp"
#include "device.hpp"
#include "layer_update.hpp"

namespace py = pybind11;

namespace catchment::optimizer {
namespace {

// How long a wait goes without looking for signals.
constexpr std::chrono::milliseconds kSignalInterval{50};

using Bytes = py::array_t<std::uint8_t, py::array::c_style>;
using Scalars = py::array_t<float, py::array::c_style | py::array::forcecast>;
using Sizes = std::vector<std::size_t>;

std::byte* data(const py::object& array, bool writable = true) {
  if (array.is_none()) return nullptr;
  auto bytes = array.cast<Bytes>();
  if (bytes.ptr() != array.ptr()) throw py::type_error("a contiguous uint8 array is needed");
  return reinterpret_cast<std::byte*>(writable ? bytes.mutable_data()
                                               : const_cast<std::uint8_t*>(bytes.data()));
}

std::span<const std::byte> span_of(const py::buffer_info& info) {
  return {static_cast<const std::byte*>(info.ptr),
          static_cast<std::size_t>(info.size * info.itemsize)};
}

// A request and the memory that the device moves for it.
struct Held {
  std::shared_ptr<Ticket> ticket;
  py::object memory;
};

// Requests of a device that are not settled, and whose tickets nobody has any more: they keep their
// memory.  The device's thread never takes the GIL, and nobody waits for the device here, so that
// neither can wait for the other: who calls the device next, or closes it, drops what is settled.
// Whoever calls this holds the GIL.
class Orphans {
 public:
  void adopt(std::list<Held>& held) noexcept { held_.splice(held_.end(), held); }

  void drop_settled() {
    std::list<Held> settled;  // what frees their memory may be Python, and call the device again
    for (auto each = held_.begin(); each != held_.end();) {
      const auto next = std::next(each);
      if (each->ticket->done()) settled.splice(settled.end(), held_, each);
      each = next;
    }
  }

 private:
  std::list<Held> held_;
};

// A ticket; the memory of its request stays until the request is settled, with or without it.
class BoundTicket {
 public:
  BoundTicket(std::list<Held> held, std::shared_ptr<Orphans> orphans)
      : held_(std::move(held)), orphans_(std::move(orphans)) {}
  ~BoundTicket() {
    if (!ticket().done()) orphans_->adopt(held_);
  }
  BoundTicket(const BoundTicket&) = delete;
  BoundTicket& operator=(const BoundTicket&) = delete;

  int wait() {
    Ticket& ticket = *held_.front().ticket;
    while (!ticket.done()) {
      {
        const py::gil_scoped_release release;
        ticket.wait_for(kSignalInterval);
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
    return ticket.error();
  }

  const Ticket& ticket() const { return *held_.front().ticket; }

 private:
  std::list<Held> held_;  // one, which its end can hand on without an allocation
  std::shared_ptr<Orphans> orphans_;
};

class BoundDevice {
 public:
  BoundDevice(int descriptor, bool uring, std::size_t chunk, unsigned depth, double rate,
              unsigned index, std::shared_ptr<Faults> faults) {
    // The caller keeps its own descriptor.
    FileDescriptor file(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0), "dup");
    device_ = std::make_unique<Device>(
        std::move(file), DeviceOptions{uring, chunk, depth, rate, index, std::move(faults)});
  }
  ~BoundDevice() { close(); }
  BoundDevice(const BoundDevice&) = delete;
  BoundDevice& operator=(const BoundDevice&) = delete;

  std::unique_ptr<BoundTicket> move(Action action, Lane lane, std::uint64_t offset, Bytes memory) {
    const Operation operation{
        action, offset, reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(memory.data())),
        static_cast<std::size_t>(memory.nbytes())};
    return submit(lane, operation, std::move(memory));
  }

  std::unique_ptr<BoundTicket> sync() {
    const Operation operation{Action::kSync, 0, nullptr, 0};
    return submit(Lane::kStateWrite, operation, py::none());
  }

  py::dict stats() {
    orphans_->drop_settled();
    const DeviceStats stats = usable().stats();
    py::dict result;
    result["parameter_read_bytes"] = stats.bytes[0];
    result["state_read_bytes"] = stats.bytes[1];
    result["state_write_bytes"] = stats.bytes[2];
    result["operations"] = stats.chunks[0] + stats.chunks[1] + stats.chunks[2];
    result["syncs"] = stats.syncs;
    result["busy"] = stats.busy;
    return result;
  }

  void close() {
    {
      const py::gil_scoped_release release;
      device_.reset();
    }
    orphans_->drop_settled();
  }

 private:
  std::unique_ptr<BoundTicket> submit(Lane lane, const Operation& operation, py::object memory) {
    orphans_->drop_settled();
    std::list<Held> held;
    held.push_back({nullptr, std::move(memory)});
    held.front().ticket = usable().submit(lane, operation);
    return std::make_unique<BoundTicket>(std::move(held), orphans_);
  }

  Device& usable() {
    if (!device_) throw std::runtime_error("the device is closed");
    return *device_;
  }

  std::unique_ptr<Device> device_;
  std::shared_ptr<Orphans> orphans_ = std::make_shared<Orphans>();
};

py::object to_array(const std::vector<ShardDigests>& digests) {
  py::array_t<std::uint32_t> table({digests.size(), std::size_t{4}});
  auto cells = table.mutable_unchecked<2>();
  for (py::ssize_t i = 0; i < cells.shape(0); ++i) {
    const ShardDigests& each = digests[static_cast<std::size_t>(i)];
    cells(i, 0) = each.parameters;
    cells(i, 1) = each.master;
    cells(i, 2) = each.first;
    cells(i, 3) = each.second;
  }
  return table;
}

std::vector<TensorStep> steps_of(const Sizes& offsets, const Sizes& counts, const Scalars& scalars,
                                 bool adam) {
  const auto rows = scalars.unchecked<2>();
  if (offsets.size() != counts.size() ||
      static_cast<std::size_t>(rows.shape(0)) != offsets.size() ||
      (!offsets.empty() && rows.shape(1) != (adam ? 8 : 5))) {
    throw py::value_error("one row of scalars, one offset and one count per tensor");
  }
  std::vector<TensorStep> steps;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto at = [&](py::ssize_t column) { return rows(static_cast<py::ssize_t>(i), column); };
    TensorStep step{offsets[i], counts[i], {}};
    if (adam) {
      step.scalars = AdamScalars{at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
    } else {
      step.scalars = SgdScalars{at(0), at(1), at(2), at(3), at(4) != 0};
    }
    steps.push_back(step);
  }
  return steps;
}

class Updater {
 public:
  Updater(std::size_t threads, const std::string& kernels)
      : pool_(std::max<std::size_t>(1, threads)), kernels_(find_kernels(kernels.c_str())) {
    if (kernels_ == nullptr) throw py::value_error("this processor has no kernels " + kernels);
  }

  std::string kernels() const { return kernels_->name; }
  std::size_t threads() const { return pool_.threads(); }

  py::tuple update(const py::object& parameters, const py::object& master, const py::object& first,
                   const py::object& second, bool bf16_moments, const py::object& gradient,
                   const Sizes& shard_units, const Sizes& offsets, const Sizes& counts,
                   const Scalars& scalars, bool summed) {
    const Sections sections{data(parameters), data(master), data(first), data(second),
                            bf16_moments ? MomentType::kBf16 : MomentType::kFp32};
    const auto* const from = reinterpret_cast<const float*>(data(gradient, false));
    const std::vector<TensorStep> steps =
        steps_of(offsets, counts, scalars, sections.second != nullptr);
    UpdateResult result;
    {
      const py::gil_scoped_release release;
      result = update_layer(*kernels_, pool_, sections, from, shard_units, steps, summed);
    }
    return py::make_tuple(to_array(result.before), to_array(result.after));
  }

  std::vector<std::uint32_t> digests(const py::object& section, std::size_t element_bytes,
                                     const Sizes& shard_units) {
    const std::byte* const from = data(section, false);
    const py::gil_scoped_release release;
    return section_digests(*kernels_, pool_, from, element_bytes, shard_units);
  }

  double squares(const py::object& gradient, float scale) {
    const auto* const from = reinterpret_cast<const float*>(data(gradient, false));
    const auto count = static_cast<std::size_t>(gradient.cast<Bytes>().nbytes()) / sizeof(float);
    const py::gil_scoped_release release;
    const std::size_t blocks = (count + kUnit - 1) / kUnit;
    std::vector<double> sums(blocks);
    pool_.run(blocks, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        sums[i] = kernels_->squares(from + i * kUnit, std::min(kUnit, count - i * kUnit), scale);
      }
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    return total;
  }

 private:
  WorkPool pool_;
  const Kernels* kernels_;
};

std::shared_ptr<Faults> make_faults(const std::string& on, std::int64_t after, int error, bool torn,
                                    const std::string& log) {
  FaultPlan plan{{}, after, error, torn};
  if (on == "read") plan.on = Action::kRead;
  if (on == "write") plan.on = Action::kWrite;
  if (on == "sync") plan.on = Action::kSync;
  if (!plan.on && !on.empty()) throw py::value_error("on: read, write, sync or empty");
  return std::make_shared<Faults>(plan, log);
}

}  // namespace

PYBIND11_MODULE(_optimizer, module) {
  module.attr("UNIT") = kUnit;

  py::enum_<Lane>(module, "Lane")
      .value("PARAMETER_READ", Lane::kParameterRead)
      .value("STATE_READ", Lane::kStateRead)
      .value("STATE_WRITE", Lane::kStateWrite);

  py::class_<BoundTicket>(module, "Ticket")
      .def("wait", &BoundTicket::wait)
      .def_property_readonly("done", [](const BoundTicket& t) { return t.ticket().done(); })
      .def_property_readonly("started", [](const BoundTicket& t) { return t.ticket().started(); })
      .def_property_readonly("ended", [](const BoundTicket& t) { return t.ticket().ended(); });

  py::class_<Faults, std::shared_ptr<Faults>>(module, "Faults")
      .def(py::init(&make_faults), py::kw_only(), py::arg("on") = "", py::arg("after") = -1,
           py::arg("error") = 0, py::arg("torn") = false, py::arg("log") = "")
      .def_property_readonly("seen", &Faults::seen);

  py::class_<BoundDevice>(module, "Device")
      .def(py::init<int, bool, std::size_t, unsigned, double, unsigned, std::shared_ptr<Faults>>(),
           py::arg("descriptor"), py::kw_only(), py::arg("uring"), py::arg("chunk"),
           py::arg("depth"), py::arg("rate"), py::arg("index"), py::arg("faults"))
      .def("read",
           [](BoundDevice& device, Lane lane, std::uint64_t offset, Bytes memory) {
             return device.move(Action::kRead, lane, offset, std::move(memory));
           })
      .def("write",
           [](BoundDevice& device, std::uint64_t offset, Bytes memory) {
             return device.move(Action::kWrite, Lane::kStateWrite, offset, std::move(memory));
           })
      .def("sync", &BoundDevice::sync)
      .def("stats", &BoundDevice::stats)
      .def("close", &BoundDevice::close);

  py::class_<Updater>(module, "Updater")
      .def(py::init<std::size_t, std::string>(), py::arg("threads"), py::arg("kernels") = "")
      .def_property_readonly("kernels", &Updater::kernels)
      .def_property_readonly("threads", &Updater::threads)
      .def("update", &Updater::update, py::kw_only(), py::arg("parameters"), py::arg("master"),
           py::arg("first"), py::arg("second"), py::arg("bf16_moments"), py::arg("gradient"),
           py::arg("shard_units"), py::arg("offsets"), py::arg("counts"), py::arg("scalars"),
           py::arg("summed") = true)
      .def("digests", &Updater::digests, py::arg("section"), py::arg("element_bytes"),
           py::arg("shard_units"))
      .def("squares", &Updater::squares, py::arg("gradient"), py::arg("scale"));

  module.def(
      "crc32c",
      [](const py::buffer& bytes, std::uint32_t crc) {
        return crc32c(span_of(bytes.request()), crc);
      },
      py::arg("data"), py::arg("crc") = 0);
}

}  // namespace catchment::optimizer
