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
#include "machine.hpp"
#include "sim/world/native/python_faults.hpp"
#include "wire.hpp"

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

void plug_in(const Socket& socket, ProtocolLine& outgoing) {
  if (const auto* device = std::get_if<DeviceNode*>(&socket.node)) {
    (*device)->attach(outgoing);
  } else if (const auto* member = std::get_if<MemberNode*>(&socket.node)) {
    (*member)->attach(outgoing);
  } else {
    std::get<SwitchNode*>(socket.node)->attach(socket.port, outgoing);
  }
}

void end_at(Machine& machine, ProtocolLine& line, const Socket& from, const Socket& to) {
  if (const auto* device = std::get_if<DeviceNode*>(&to.node)) {
    const auto* node = std::get_if<SwitchNode*>(&from.node);
    machine.end(line, **device);
    machine.allow(line.timing().latency + (node != nullptr ? (*node)->timing().pipeline : 0));
  } else if (const auto* member = std::get_if<MemberNode*>(&to.node)) {
    machine.end(line, **member, to.port);
  } else {
    machine.end(line, *std::get<SwitchNode*>(to.node), to.port);
  }
}

// A cable; its two lines, first that from `a` to `b`.
std::pair<ProtocolLine*, ProtocolLine*> connect(Machine& machine, const Socket& a, const Socket& b,
                                                LineTiming timing) {
  ProtocolLine& there = machine.add_line(timing);
  ProtocolLine& back = machine.add_line(timing);
  plug_in(a, there);
  plug_in(b, back);
  end_at(machine, there, a, b);
  end_at(machine, back, b, a);
  return {&there, &back};
}

py::dict counts_of(const ProtocolLine& line) {
  const TypeCounts& types = line.by_type();
  py::dict frames;
  py::dict bytes;
  py::dict resent;
  for (std::size_t type = 0; type < kTypes; ++type) {
    if (types.frames[type] == 0) continue;
    frames[py::int_(type)] = types.frames[type];
    bytes[py::int_(type)] = types.bytes[type];
    resent[py::int_(type)] = types.resent[type];
  }
  const world::LineCounts& counts = line.counts();
  py::dict all;
  all["frames"] = frames;
  all["bytes"] = bytes;
  all["resent"] = resent;
  all["lost"] = counts.lost;
  all["damaged"] = counts.damaged;
  all["duplicated"] = counts.duplicated;
  all["reordered"] = counts.reordered;
  all["replayed"] = line.replayed();
  return all;
}

py::list take_sightings(Machine& machine) {
  py::list out;
  for (const Sighting& one : machine.sightings()) {
    out.append(py::make_tuple(
        one.line, one.at, one.lost,
        py::bytes(reinterpret_cast<const char*>(one.bytes->data()), one.bytes->size())));
  }
  return out;
}

DeviceNode& add_device(Machine& machine, std::uintptr_t table, std::uintptr_t device,
                       std::size_t fifo_bytes) {
  return machine.add_device(*reinterpret_cast<const rtl::Device*>(table),
                            reinterpret_cast<void*>(device), fifo_bytes);
}

RingNode& add_ring_node(Machine& machine, std::uintptr_t table, std::uintptr_t device) {
  return machine.add_ring_node(*reinterpret_cast<const rtl::RingDevice*>(table),
                               reinterpret_cast<void*>(device));
}

py::list take_answers(RegisterPort& registers) {
  py::list out;
  for (const auto& one : registers.answers()) {
    out.append(py::make_tuple(one.access.reads, one.access.address, one.response, one.value));
  }
  return out;
}

void bind_line(py::module_& module) {
  py::class_<LineTiming>(module, "LineTiming")
      .def(py::init([](Picos byte, Picos latency) { return LineTiming{byte, latency}; }),
           py::kw_only(), py::arg("byte"), py::arg("latency"));
  py::class_<ProtocolLine>(module, "Line")
      .def_property_readonly("number", &ProtocolLine::number)
      .def_property_readonly("digest", &ProtocolLine::digest)
      .def("counts", &counts_of)
      .def("lose", &ProtocolLine::lose, py::arg("type"), py::arg("skip"), py::arg("count"))
      .def("set_faults", [](ProtocolLine& line, const py::object& faults) {
        line.set_faults(world::faults_of(faults));
      });
}

host::Memory memory_of(std::uintptr_t address, std::size_t elements, int dtype) {
  return {reinterpret_cast<std::uint8_t*>(address), elements, static_cast<wire::DataType>(dtype)};
}

// Requests are of the type that the module _native has made known.
void bind_member(py::module_& module) {
  py::class_<MemberNode>(module, "Member")
      .def("join",
           [](MemberNode& node, const Machine& machine, const py::dict& fields) {
             node.join(host::endpoint_config(fields), host::address(fields["local"]),
                       host::address(fields["switch"]), machine.now());
           })
      .def("push",
           [](MemberNode& node, const Machine& machine, std::uintptr_t address,
              std::size_t elements, int dtype, int exponent, bool block) {
             return node.push(memory_of(address, elements, dtype), {exponent, block},
                              machine.now());
           })
      .def("pull",
           [](MemberNode& node, const Machine& machine, std::uintptr_t address,
              std::size_t elements, int dtype, bool block) {
             return node.pull(memory_of(address, elements, dtype), {0, block}, machine.now());
           })
      .def("watch", &MemberNode::watch)
      .def("stats", [](const MemberNode& node) { return host::to_dict(node.stats()); })
      .def("failure", [](const MemberNode& node) { return host::to_dict(node.failure()); })
      .def("counts", [](const MemberNode& node) {
        return std::pair{node.counts().damaged, node.counts().overrun};
      });
}

void bind_nodes(py::module_& module) {
  py::class_<Watch, std::shared_ptr<Watch>>(module, "Watch").def_readonly("at", &Watch::at);
  py::class_<RegisterPort>(module, "Registers")
      .def("write", [](RegisterPort& registers, std::uint32_t address,
                       std::uint32_t value) { registers.access({false, address, value}); })
      .def("read", [](RegisterPort& registers,
                      std::uint32_t address) { registers.access({true, address, 0}); })
      .def("answers", &take_answers);
  py::class_<RingNode>(module, "RingNode")
      .def_readonly("registers", &RingNode::registers)
      .def("watch", &RingNode::watch);
  py::class_<FlitLine>(module, "FlitLine")
      .def("counts",
           [](const FlitLine& link) {
             const world::LineCounts& counts = link.line.counts();
             py::dict all;
             all["flits"] = counts.frames;
             all["lost"] = counts.lost;
             all["damaged"] = counts.damaged;
             return all;
           })
      .def("set_faults", [](FlitLine& link, double loss, double damage) {
        world::LineFaults faults;
        faults.loss = loss;
        faults.damage = damage;
        link.line.set_faults(faults);
      });
  py::class_<DeviceNode>(module, "Device")
      .def_readonly("registers", &DeviceNode::registers)
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
        const world::LineCounts& counts = node.counts(port);
        return std::pair{counts.dropped, counts.most_waiting};
      });
  bind_member(module);
  py::class_<Socket>(module, "Socket")
      .def(py::init([](DeviceNode& node) { return Socket{&node, 0}; }))
      .def(py::init([](MemberNode& node) { return Socket{&node, 0}; }))
      .def(py::init([](SwitchNode& node, std::uint32_t port) { return Socket{&node, port}; }));
}

void bind_machine(py::module_& module) {
  const auto owned = py::return_value_policy::reference_internal;
  py::class_<Machine>(module, "Machine")
      .def(py::init<std::uint64_t, std::uint64_t>(), py::arg("seed"), py::arg("batch"))
      .def_property_readonly("clocks", &Machine::clocks)
      .def_property_readonly("batch", &Machine::batch)
      .def("add_device", &add_device, owned)
      .def("add_ring_node", &add_ring_node, owned)
      .def("close_ring", &Machine::close_ring, py::arg("timing"))
      .def("link", &Machine::link, owned, py::arg("node"), py::arg("to_next"))
      .def(
          "add_switch",
          [](Machine& machine, Dataplane& dataplane, Picos pipeline,
             std::size_t queue_bytes) -> SwitchNode& {
            return machine.add_switch(dataplane.packets(), {pipeline, queue_bytes});
          },
          owned, py::keep_alive<1, 2>())
      .def(
          "add_member",
          [](Machine& machine, Picos receive, Picos frame, std::size_t ring_bytes,
             std::size_t ring_frames) -> MemberNode& {
            return machine.add_member({receive, frame, ring_bytes, ring_frames});
          },
          owned, py::kw_only(), py::arg("receive"), py::arg("frame"), py::arg("ring_bytes"),
          py::arg("ring_frames"))
      .def("connect", &connect, owned)
      .def("close", &Machine::close)
      .def("run", &Machine::run, Release())
      .def("run_watched", &Machine::run_watched, Release())
      .def("run_accesses", &Machine::run_accesses, Release())
      .def("capture", &Machine::capture)
      .def("sightings", &take_sightings);
}

}  // namespace
}  // namespace catchment::cosim

PYBIND11_MODULE(_cosim, module) {
  using namespace catchment::cosim;
  module.attr("PICOS_PER_CLOCK") = kClock;
  bind_line(module);
  bind_nodes(module);
  bind_machine(module);
}
