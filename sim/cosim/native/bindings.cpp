// The co-simulation for Python: sim/cosim/machine.py is its user.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "binding_values.hpp"
#include "catchment/softswitch/dataplane.hpp"
#include "wire.hpp"
#include "world.hpp"

namespace py = pybind11;

namespace catchment::cosim {
namespace {

using softswitch::Dataplane;
using Release = py::call_guard<py::gil_scoped_release>;

// One end of a cable.
struct Socket {
  std::variant<DeviceNode*, SwitchNode*, MemberNode*> node;
  std::uint32_t port = 0;
};

void plug_in(const Socket& socket, Line& outgoing) {
  if (const auto* device = std::get_if<DeviceNode*>(&socket.node)) {
    (*device)->attach(outgoing);
  } else if (const auto* member = std::get_if<MemberNode*>(&socket.node)) {
    (*member)->attach(outgoing);
  } else {
    std::get<SwitchNode*>(socket.node)->attach(socket.port, outgoing);
  }
}

void end_at(World& world, Line& line, const Socket& from, const Socket& to) {
  if (const auto* device = std::get_if<DeviceNode*>(&to.node)) {
    const auto* node = std::get_if<SwitchNode*>(&from.node);
    world.end(line, **device);
    world.allow(line.timing().latency + (node != nullptr ? (*node)->timing().pipeline : 0));
  } else if (const auto* member = std::get_if<MemberNode*>(&to.node)) {
    world.end(line, **member, to.port);
  } else {
    world.end(line, *std::get<SwitchNode*>(to.node), to.port);
  }
}

// A cable; its two lines, first that from `a` to `b`.
std::pair<Line*, Line*> connect(World& world, const Socket& a, const Socket& b, LineTiming timing,
                                std::uint64_t seed) {
  Line& there = world.add_line(timing, 2 * seed);
  Line& back = world.add_line(timing, 2 * seed + 1);
  plug_in(a, there);
  plug_in(b, back);
  end_at(world, there, a, b);
  end_at(world, back, b, a);
  return {&there, &back};
}

py::dict counts_of(const LineCounts& counts) {
  py::dict frames;
  py::dict bytes;
  py::dict resent;
  for (std::size_t type = 0; type < kTypes; ++type) {
    if (counts.frames[type] == 0) continue;
    frames[py::int_(type)] = counts.frames[type];
    bytes[py::int_(type)] = counts.bytes[type];
    resent[py::int_(type)] = counts.resent[type];
  }
  py::dict all;
  all["frames"] = frames;
  all["bytes"] = bytes;
  all["resent"] = resent;
  all["lost"] = counts.lost;
  all["damaged"] = counts.damaged;
  all["duplicated"] = counts.duplicated;
  all["reordered"] = counts.reordered;
  return all;
}

py::list take_sightings(World& world) {
  py::list out;
  for (const Sighting& one : world.sightings()) {
    out.append(py::make_tuple(
        one.line, one.at, one.lost,
        py::bytes(reinterpret_cast<const char*>(one.bytes->data()), one.bytes->size())));
  }
  return out;
}

DeviceNode& add_device(World& world, std::uintptr_t table, std::uintptr_t device,
                       std::size_t fifo_bytes) {
  return world.add_device(*reinterpret_cast<const rtl::Device*>(table),
                          reinterpret_cast<void*>(device), fifo_bytes);
}

py::list take_answers(DeviceNode& device) {
  py::list out;
  for (const auto& one : device.answers()) {
    out.append(py::make_tuple(one.access.reads, one.access.address, one.response, one.value));
  }
  return out;
}

void bind_line(py::module_& module) {
  py::class_<LineTiming>(module, "LineTiming")
      .def(py::init([](Picos byte, Picos latency) { return LineTiming{byte, latency}; }),
           py::kw_only(), py::arg("byte"), py::arg("latency"));
  py::class_<Line>(module, "Line")
      .def_property_readonly("number", &Line::number)
      .def_property_readonly("digest", &Line::digest)
      .def("counts", [](const Line& line) { return counts_of(line.counts()); })
      .def("lose", &Line::lose, py::arg("type"), py::arg("skip"), py::arg("count"))
      .def(
          "set_faults",
          [](Line& line, double loss, double damage, double duplicate, double reorder,
             Picos delay) { line.faults = {loss, damage, duplicate, reorder, delay}; },
          py::kw_only(), py::arg("loss"), py::arg("damage"), py::arg("duplicate"),
          py::arg("reorder"), py::arg("delay"));
}

host::Memory memory_of(std::uintptr_t address, std::size_t elements, int dtype) {
  return {reinterpret_cast<std::uint8_t*>(address), elements, static_cast<wire::DataType>(dtype)};
}

// Requests are of the type that the module _native has made known.
void bind_member(py::module_& module) {
  py::class_<MemberNode>(module, "Member")
      .def("join",
           [](MemberNode& node, const World& world, const py::dict& fields) {
             node.join(host::endpoint_config(fields), host::address(fields["local"]),
                       host::address(fields["switch"]), world.now());
           })
      .def("push",
           [](MemberNode& node, const World& world, std::uintptr_t address, std::size_t elements,
              int dtype, int exponent) {
             return node.push(memory_of(address, elements, dtype), exponent, world.now());
           })
      .def("pull",
           [](MemberNode& node, const World& world, std::uintptr_t address, std::size_t elements,
              int dtype) { return node.pull(memory_of(address, elements, dtype), world.now()); })
      .def("watch", &MemberNode::watch)
      .def("stats", [](const MemberNode& node) { return host::to_dict(node.stats()); })
      .def("failure", [](const MemberNode& node) { return host::to_dict(node.failure()); })
      .def("counts", [](const MemberNode& node) {
        return std::pair{node.counts().damaged, node.counts().overrun};
      });
}

void bind_nodes(py::module_& module) {
  py::class_<Watch, std::shared_ptr<Watch>>(module, "Watch").def_readonly("at", &Watch::at);
  py::class_<DeviceNode>(module, "Device")
      .def("write", [](DeviceNode& device, std::uint32_t address,
                       std::uint32_t value) { device.access({false, address, value}); })
      .def("read",
           [](DeviceNode& device, std::uint32_t address) { device.access({true, address, 0}); })
      .def("answers", &take_answers)
      .def("watch",
           [](DeviceNode& device, std::uintptr_t byte) {
             return device.watch(reinterpret_cast<const volatile std::uint8_t*>(byte));
           })
      .def("counts", [](const DeviceNode& device) {
        const MacCounts& counts = device.counts();
        py::dict all;
        all["tx_beats"] = counts.tx_beats;
        all["tx_full_clocks"] = counts.tx_full_clocks;
        all["rx_beats"] = counts.rx_beats;
        all["cut_frames"] = counts.cut_frames;
        return all;
      });
  py::class_<SwitchNode>(module, "Switch")
      .def_property_readonly("damaged", &SwitchNode::damaged)
      .def("queue", [](const SwitchNode& node, std::uint32_t port) {
        const PortQueueCounts counts = node.counts(port);
        return std::pair{counts.dropped, counts.most_bytes};
      });
  bind_member(module);
  py::class_<Socket>(module, "Socket")
      .def(py::init([](DeviceNode& node) { return Socket{&node, 0}; }))
      .def(py::init([](MemberNode& node) { return Socket{&node, 0}; }))
      .def(py::init([](SwitchNode& node, std::uint32_t port) { return Socket{&node, port}; }));
}

void bind_world(py::module_& module) {
  const auto owned = py::return_value_policy::reference_internal;
  py::class_<World>(module, "World")
      .def(py::init<std::uint64_t>(), py::arg("batch"))
      .def_property_readonly("clocks", &World::clocks)
      .def_property_readonly("batch", &World::batch)
      .def("add_device", &add_device, owned)
      .def(
          "add_switch",
          [](World& world, Dataplane& dataplane, Picos pipeline,
             std::size_t queue_bytes) -> SwitchNode& {
            return world.add_switch(dataplane.packets(), {pipeline, queue_bytes});
          },
          owned, py::keep_alive<1, 2>())
      .def(
          "add_member",
          [](World& world, Picos receive, Picos frame, std::size_t ring_bytes,
             std::size_t ring_frames) -> MemberNode& {
            return world.add_member({receive, frame, ring_bytes, ring_frames});
          },
          owned, py::kw_only(), py::arg("receive"), py::arg("frame"), py::arg("ring_bytes"),
          py::arg("ring_frames"))
      .def("connect", &connect, owned)
      .def("close", &World::close)
      .def("run", &World::run, Release())
      .def("run_watched", &World::run_watched, Release())
      .def("run_accesses", &World::run_accesses, Release())
      .def("capture", &World::capture)
      .def("sightings", &take_sightings);
}

}  // namespace
}  // namespace catchment::cosim

PYBIND11_MODULE(_cosim, module) {
  using namespace catchment::cosim;
  module.attr("PICOS_PER_CLOCK") = kClock;
  module.def("wire_bytes", &wire_bytes, "Bytes that a frame of so many takes on the wire.");
  bind_line(module);
  bind_nodes(module);
  bind_world(module);
}
