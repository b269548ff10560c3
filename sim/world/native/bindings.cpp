// The world for Python: events are calls, frames are any objects with a length in bytes.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/world/native/frame_line.hpp"
#include "sim/world/native/python_faults.hpp"
#include "sim/world/native/world.hpp"

namespace py = pybind11;

namespace catchment::world {
namespace {

// Something to call, with a frame or with nothing.
struct Call {
  py::object target;
  py::object frame;
};

// What waits to be called lies in `calls`, where Python's collector of garbage sees it: a network
// that is forgotten while events wait is freed.
class PyWorld {
 public:
  explicit PyWorld(std::uint64_t seed) : world(seed), node_(world.add_node()) {}

  void at(Picos time, py::object call) { schedule(node_, time, {std::move(call), py::object()}); }

  void schedule(std::uint32_t source, Picos time, Call call) {
    const bool reuses = !free_.empty();
    const std::size_t place = reuses ? free_.back() : calls.size();
    world.schedule(source, time, place);
    if (reuses) {
      free_.pop_back();
      calls[place] = std::move(call);
    } else {
      calls.push_back(std::move(call));
    }
  }

  bool step(Picos end) {
    return world.step(end, [this](const auto& event) { carry_out(event.payload); });
  }
  void run(Picos end) {
    world.run(end, [this](const auto& event) { carry_out(event.payload); });
  }

  World<std::size_t> world;
  std::vector<Call> calls;

 private:
  void carry_out(std::size_t place) {
    const Call call = std::exchange(calls[place], Call{});
    free_.push_back(place);
    if (!call.target) return;
    if (call.frame) {
      call.target(call.frame);
    } else {
      call.target();
    }
  }

  std::uint32_t node_;
  std::vector<std::size_t> free_;
};

class PyLine {
 public:
  PyLine(py::object world, py::object deliver, LineTiming timing)
      : owner(std::move(world)),
        deliver(std::move(deliver)),
        world_(owner.cast<PyWorld&>()),
        line(world_.world.seed(), world_.world.add_line(), timing) {}

  // Whether any of it arrives.
  bool send(const py::object& frame, std::uint8_t kind, std::optional<Picos> ready) {
    const Picos from = std::max(ready.value_or(0), world_.world.now());
    const Transit transit = line.carry(
        frame, py::len(frame), kind, from, from, [&](const py::object& one, const Copy& copy) {
          // A receiver drops a frame whose FCS is wrong.
          if (!copy.damaged) world_.schedule(line.number(), copy.last, {deliver, one});
        });
    return transit.copies != 0;
  }

  py::object owner;
  py::object deliver;

 private:
  PyWorld& world_;

 public:
  FrameLine<py::object> line;
};

int visit(PyWorld& world, visitproc visit, void* arg) {
  for (const Call& call : world.calls) {
    Py_VISIT(call.target.ptr());
    Py_VISIT(call.frame.ptr());
  }
  return 0;
}
void clear(PyWorld& world) {
  for (Call& call : world.calls) call = {};
}

int visit(PyLine& line, visitproc visit, void* arg) {
  Py_VISIT(line.owner.ptr());
  Py_VISIT(line.deliver.ptr());
  return 0;
}
void clear(PyLine& line) { line.deliver = py::none(); }

// Python's collector of garbage sees through an object of this type.
template <typename Type>
py::custom_type_setup collected() {
  return py::custom_type_setup([](PyHeapTypeObject* heap_type) {
    PyTypeObject* const type = &heap_type->ht_type;
    type->tp_flags |= Py_TPFLAGS_HAVE_GC;
    type->tp_traverse = [](PyObject* self, visitproc visitor, void* arg) {
      if (const int stop = visitor(reinterpret_cast<PyObject*>(Py_TYPE(self)), arg); stop != 0) {
        return stop;
      }
      if (!py::detail::is_holder_constructed(self)) return 0;
      return visit(py::cast<Type&>(py::handle(self)), visitor, arg);
    };
    type->tp_clear = [](PyObject* self) {
      if (py::detail::is_holder_constructed(self)) clear(py::cast<Type&>(py::handle(self)));
      return 0;
    };
  });
}

py::dict counts_of(const PyLine& line) {
  const LineCounts& counts = line.line.counts();
  py::dict out;
  out["frames"] = counts.frames;
  out["bytes"] = counts.bytes;
  out["dropped"] = counts.dropped;
  out["lost"] = counts.lost;
  out["damaged"] = counts.damaged;
  out["duplicated"] = counts.duplicated;
  out["reordered"] = counts.reordered;
  out["replayed"] = line.line.replayed();
  out["most_waiting"] = counts.most_waiting;
  return out;
}

void bind_world(py::module_& module) {
  py::class_<PyWorld>(module, "World", collected<PyWorld>())
      .def(py::init<std::uint64_t>(), py::arg("seed"))
      .def_property_readonly("now", [](const PyWorld& world) { return world.world.now(); })
      .def_property_readonly("pending", [](const PyWorld& world) { return world.world.pending(); })
      .def("at", &PyWorld::at, py::arg("time"), py::arg("call"))
      .def(
          "after",
          [](PyWorld& world, Picos delay, py::object call) {
            world.at(world.world.now() + delay, std::move(call));
          },
          py::arg("delay"), py::arg("call"))
      .def("step", &PyWorld::step, py::arg("end") = kForever)
      .def("run", &PyWorld::run, py::arg("end"));
}

void bind_line(py::module_& module) {
  py::class_<PyLine>(module, "Line", collected<PyLine>())
      .def(py::init([](py::object world, py::object deliver, Picos byte, Picos latency,
                       std::optional<std::size_t> queue_bytes, const py::object& faults) {
             auto line = std::make_unique<PyLine>(std::move(world), std::move(deliver),
                                                  LineTiming{byte, latency});
             line->line.limit_queue(queue_bytes.value_or(Line::kUnlimited));
             if (!faults.is_none()) line->line.set_faults(faults_of(faults));
             return line;
           }),
           py::arg("world"), py::arg("deliver"), py::kw_only(), py::arg("byte") = 0,
           py::arg("latency") = 0, py::arg("queue_bytes") = py::none(),
           py::arg("faults") = py::none())
      .def_property_readonly("number", [](const PyLine& line) { return line.line.number(); })
      .def_property_readonly("counts", &counts_of)
      .def_property_readonly("free_at", [](const PyLine& line) { return line.line.free_at(); })
      .def("set_faults",
           [](PyLine& line, const py::object& faults) { line.line.set_faults(faults_of(faults)); })
      .def(
          "lose",
          [](PyLine& line, std::optional<std::uint8_t> kind, std::uint64_t skip,
             std::uint64_t count) { line.line.lose(kind, skip, count); },
          py::kw_only(), py::arg("kind") = py::none(), py::arg("skip") = 0, py::arg("count") = 1)
      .def("send", &PyLine::send, py::arg("frame"), py::kw_only(), py::arg("kind") = 0,
           py::arg("ready") = py::none());
}

void bind_faults(py::module_& module) {
  py::class_<CopyFate>(module, "CopyFate")
      .def_readonly("reordered", &CopyFate::reordered)
      .def("hold", [](const CopyFate& copy, std::uint64_t most) { return scaled(copy.hold, most); })
      .def("jitter",
           [](const CopyFate& copy, std::uint64_t most) { return scaled(copy.jitter, most); });
  py::class_<Fate>(module, "Fate")
      .def_readonly("lost", &Fate::lost)
      .def_readonly("damaged", &Fate::damaged)
      .def_property_readonly("copies",
                             [](const Fate& fate) {
                               py::list out;
                               for (std::size_t i = 0; i < fate.copies; ++i) {
                                 out.append(fate.copy[i]);
                               }
                               return out;
                             })
      .def_readonly("replays", &Fate::replays)
      .def("which", [](const Fate& fate, std::uint64_t most) { return scaled(fate.which, most); });
  py::class_<FaultStream>(module, "FaultStream")
      .def(py::init<std::uint64_t, std::uint64_t>(), py::arg("seed"), py::arg("line"))
      .def(
          "next",
          [](FaultStream& stream, const py::object& faults, std::uint8_t kind) {
            return stream.next(faults_of(faults), kind);
          },
          py::arg("faults"), py::arg("kind") = 0)
      .def(
          "lose",
          [](FaultStream& stream, std::optional<std::uint8_t> kind, std::uint64_t skip,
             std::uint64_t count) { stream.targeted.add(kind, skip, count); },
          py::kw_only(), py::arg("kind") = py::none(), py::arg("skip") = 0, py::arg("count") = 1);
}

void bind_line_timing(py::module_& module) {
  // A line without contents and without a world, for callers that keep the time.
  py::class_<Line>(module, "BareLine")
      .def(
          py::init([](Picos byte, Picos latency) { return Line(0, 0, LineTiming{byte, latency}); }),
          py::kw_only(), py::arg("byte"), py::arg("latency") = 0)
      .def(
          "send",
          [](Line& line, std::size_t bytes, Picos ready) {
            return line.send_bare(bytes, ready).copy[0].last;
          },
          py::arg("size"), py::arg("ready"));
}

}  // namespace
}  // namespace catchment::world

PYBIND11_MODULE(_world, module) {
  using namespace catchment::world;
  module.attr("FOREVER") = kForever;
  module.attr("GAP_BYTES") = kGapBytes;
  module.def("wire_bytes", &wire_bytes, "Bytes that a frame of so many takes on the wire.");
  bind_faults(module);
  bind_world(module);
  bind_line(module);
  bind_line_timing(module);
}
