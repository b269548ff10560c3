// The simulation for Python: sim/performance/network.py builds it; nothing of Python runs per
// event.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ring_of_blocks.hpp"
#include "sim/world/native/python_faults.hpp"
#include "simulation.hpp"

namespace py = pybind11;

namespace catchment::performance {
namespace {

using Numbers = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

// Rows of (action, target, amount).
void add_operations(Simulation& simulation, const Numbers& rows) {
  const auto view = rows.unchecked<2>();
  for (py::ssize_t i = 0; i < view.shape(0); ++i) {
    simulation.operations.add(static_cast<Action>(view(i, 0)),
                              static_cast<std::uint32_t>(view(i, 1)), view(i, 2));
  }
}

// Rows of (first, second).
void add_order(Simulation& simulation, const Numbers& rows) {
  const auto view = rows.unchecked<2>();
  for (py::ssize_t i = 0; i < view.shape(0); ++i) {
    simulation.operations.order(static_cast<std::uint32_t>(view(i, 0)),
                                static_cast<std::uint32_t>(view(i, 1)));
  }
}

// Rows of (began, ended) in ps; -1: it has not.
py::array_t<std::int64_t> times(const Simulation& simulation) {
  const auto& all = simulation.operations.all();
  py::array_t<std::int64_t> out({static_cast<py::ssize_t>(all.size()), py::ssize_t{2}});
  auto view = out.mutable_unchecked<2>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    view(static_cast<py::ssize_t>(i), 0) = all[i].began;
    view(static_cast<py::ssize_t>(i), 1) = all[i].ended;
  }
  return out;
}

py::dict line_counts(const Simulation& simulation, std::uint32_t which) {
  const world::LineCounts& counts = simulation.fabric.lines().at(which).counts();
  const TypeCounts& types = simulation.fabric.counts(which);
  py::dict frames;
  py::dict resent;
  for (std::size_t type = 0; type < kTypes; ++type) {
    if (types.frames[type] == 0) continue;
    frames[py::int_(type)] = types.frames[type];
    resent[py::int_(type)] = types.resent[type];
  }
  py::dict out;
  out["frames"] = frames;
  out["resent"] = resent;
  out["bytes"] = counts.bytes;
  out["lost"] = counts.lost;
  out["dropped"] = counts.dropped;
  out["most_waiting"] = counts.most_waiting;
  return out;
}

py::dict member_counts(const Simulation& simulation, std::uint32_t which) {
  py::dict out;
  if ((which & kSoftware) != 0) {
    out["timeouts"] = simulation.programs.stats(which).timeouts.get();
    out["received"] = simulation.programs.received(which);
    out["digest"] = simulation.programs.digest(which);
    return out;
  }
  if (const auto& sender = simulation.nics.sender(which)) out["timeouts"] = sender->timeouts();
  if (const auto& receiver = simulation.nics.receiver(which)) {
    out["received"] = receiver->received();
    // Of sums that were carried in trains nobody knows the values.
    if (!simulation.trains()) out["digest"] = receiver->digest();
  }
  return out;
}

py::dict drops(const Simulation& simulation) {
  py::dict out;
  out["old_seq"] = simulation.switches.dropped(Drop::kOldSeq);
  out["beyond_window"] = simulation.switches.dropped(Drop::kBeyondWindow);
  out["wrong_direction"] = simulation.switches.dropped(Drop::kWrongDirection);
  out["down"] = simulation.switches.dropped(Drop::kDown);
  return out;
}

// What leaves a switch for a frame that a row admits: (target, type, seq, ack, credit, flags, sum)
// of each. Nothing else may be under way.
py::list play(Simulation& simulation, std::uint32_t row, int type,
              const std::tuple<Seq, Seq, Seq>& numbers, std::uint8_t flags, std::uint32_t value) {
  Frame frame;
  std::tie(frame.seq, frame.ack, frame.credit) = numbers;
  frame.type = static_cast<wire::PacketType>(type);
  frame.flags = flags;
  frame.sum = value;
  simulation.switches.on_frame(row, frame);
  py::list out;
  const auto note = [&out](const world::Event<Happening>& event) {
    const Frame& one = event.payload.frame;
    out.append(py::make_tuple(event.payload.target, static_cast<int>(one.type), one.seq, one.ack,
                              one.credit, one.flags, one.sum));
  };
  while (simulation.fabric.world.step(world::kForever, note)) {
  }
  return out;
}

Outlet outlet(std::uint32_t line, bool to_switch, std::uint32_t target) {
  if (to_switch) return {line, What::kAtSwitch, target};
  return {line, (target & kSoftware) != 0 ? What::kAtProgram : What::kAtMember, target};
}

using Hops = std::vector<std::tuple<std::vector<std::uint32_t>, std::vector<std::uint32_t>, Picos>>;

// The time of a ring whose hops are (lines forth, lines back, heartbeat).
Picos ring_of_blocks(const RingTiming& timing, const std::vector<Picos>& lines, const Hops& hops,
                     std::uint32_t chunk, std::uint32_t steps) {
  RingOfBlocks ring(timing, lines);
  for (const auto& [forth, back, heartbeat] : hops) ring.add_hop(forth, back, heartbeat);
  const py::gil_scoped_release release;
  return ring.run(chunk, steps);
}

}  // namespace

PYBIND11_MODULE(_performance, module) {
  module.def(
      "ring_of_blocks",
      [](const std::vector<Picos>& lines, const Hops& hops, std::uint32_t chunk,
         std::uint32_t steps, Picos latency, Picos pipeline, Picos push, Picos pull, Picos respond,
         Picos data_bytes, Picos head_bytes, Picos fifo_bytes, std::uint32_t window) {
        const RingTiming timing{latency,    pipeline,   push,       pull,  respond,
                                data_bytes, head_bytes, fifo_bytes, window};
        return ring_of_blocks(timing, lines, hops, chunk, steps);
      },
      py::arg("lines"), py::arg("hops"), py::arg("chunk"), py::arg("steps"), py::kw_only(),
      py::arg("latency"), py::arg("pipeline"), py::arg("push"), py::arg("pull"), py::arg("respond"),
      py::arg("data_bytes"), py::arg("head_bytes"), py::arg("fifo_bytes"), py::arg("window"));
  py::class_<Simulation>(module, "Simulation")
      .def(py::init<std::uint64_t>(), py::arg("seed"))
      .def(
          "add_line",
          [](Simulation& self, Picos byte, Picos latency, std::size_t queue_bytes,
             const py::object& faults) {
            const std::size_t queue = queue_bytes == 0 ? world::Line::kUnlimited : queue_bytes;
            const auto which = self.fabric.add_line({byte, latency}, queue);
            if (!faults.is_none()) self.fabric.line(which).set_faults(world::faults_of(faults));
            return which;
          },
          py::kw_only(), py::arg("byte"), py::arg("latency"), py::arg("queue_bytes"),
          py::arg("faults"))
      .def(
          "lose",
          [](Simulation& self, std::uint32_t line, std::uint8_t kind, std::uint64_t skip,
             std::uint64_t count) { self.fabric.line(line).lose(kind, skip, count); },
          py::arg("line"), py::kw_only(), py::arg("kind"), py::arg("skip"), py::arg("count"))
      .def(
          "add_switch",
          [](Simulation& self, Picos pipeline, Picos frame) {
            return self.switches.add_switch({pipeline, frame});
          },
          py::kw_only(), py::arg("pipeline"), py::arg("frame"))
      .def(
          "add_branch",
          [](Simulation& self, std::uint32_t at, int mode, std::uint32_t members,
             std::uint32_t slots, std::uint32_t data_bytes, std::uint32_t stream) {
            return self.switches.add_branch(
                {at, static_cast<wire::Mode>(mode), members, slots, 0, data_bytes, stream});
          },
          py::arg("at"), py::kw_only(), py::arg("mode"), py::arg("members"), py::arg("slots"),
          py::arg("data_bytes"), py::arg("stream") = 0)
      .def(
          "add_row",
          [](Simulation& self, std::uint32_t branch, std::uint32_t wid, bool from_root) {
            return self.switches.add_row(branch, wid, from_root);
          },
          py::arg("branch"), py::kw_only(), py::arg("wid"), py::arg("from_root"))
      .def(
          "set_up",
          [](Simulation& self, std::uint32_t branch, std::uint32_t line, bool to_switch,
             std::uint32_t target) {
            self.switches.set_up(branch, outlet(line, to_switch, target));
          },
          py::arg("branch"), py::kw_only(), py::arg("line"), py::arg("to_switch"),
          py::arg("target"))
      .def(
          "add_down",
          [](Simulation& self, std::uint32_t branch, std::uint32_t line, bool to_switch,
             std::uint32_t target) {
            self.switches.add_down(branch, outlet(line, to_switch, target));
          },
          py::arg("branch"), py::kw_only(), py::arg("line"), py::arg("to_switch"),
          py::arg("target"))
      .def(
          "add_host",
          [](Simulation& self, Picos push, Picos pull, Picos respond, Picos frame,
             std::size_t fifo_bytes) {
            return self.nics.add_host({push, pull, respond, frame, fifo_bytes});
          },
          py::kw_only(), py::arg("push"), py::arg("pull"), py::arg("respond"), py::arg("frame"),
          py::arg("fifo_bytes"))
      .def(
          "add_member",
          [](Simulation& self, std::uint32_t host, int part, int type, std::uint32_t identity,
             std::uint32_t window, std::uint32_t slots, std::uint32_t data_bytes, Picos heartbeat,
             Picos rto, Picos rto_most, Picos resend_delay, std::uint32_t stream) {
            return self.nics.add_member(host, static_cast<Part>(part),
                                        {0, window, slots, data_bytes, stream},
                                        {heartbeat, rto, rto_most, resend_delay},
                                        static_cast<wire::PacketType>(type), identity);
          },
          py::arg("host"), py::kw_only(), py::arg("part"), py::arg("carries"), py::arg("identity"),
          py::arg("window"), py::arg("slots"), py::arg("data_bytes"), py::arg("heartbeat"),
          py::arg("rto"), py::arg("rto_most"), py::arg("resend_delay"), py::arg("stream"))
      .def(
          "add_program",
          [](Simulation& self, Picos receive, Picos frame, std::size_t ring_bytes,
             std::size_t ring_frames) {
            return self.programs.add_host({receive, frame, ring_bytes, ring_frames});
          },
          py::kw_only(), py::arg("receive"), py::arg("frame"), py::arg("ring_bytes"),
          py::arg("ring_frames"))
      .def(
          "add_program_member",
          [](Simulation& self, std::uint32_t host, int part, int type, std::uint32_t identity,
             std::uint32_t wid, std::uint32_t window, std::uint32_t slots,
             std::uint32_t data_bytes) {
            return self.programs.add_member(host, static_cast<Part>(part),
                                            {0, window, slots, data_bytes},
                                            static_cast<wire::PacketType>(type), identity, wid);
          },
          py::arg("host"), py::kw_only(), py::arg("part"), py::arg("carries"), py::arg("identity"),
          py::arg("wid"), py::arg("window"), py::arg("slots"), py::arg("data_bytes"))
      .def(
          "plug_in",
          [](Simulation& self, std::uint32_t member, std::uint32_t line, bool to_switch,
             std::uint32_t target) {
            const Outlet out = outlet(line, to_switch, target);
            if ((member & kSoftware) != 0) return self.programs.plug_in(member, out);
            self.nics.plug_in(member, out);
          },
          py::arg("member"), py::kw_only(), py::arg("line"), py::arg("to_switch"),
          py::arg("target"))
      .def("play", &play, py::arg("row"), py::kw_only(), py::arg("carries"), py::arg("numbers"),
           py::arg("flags"), py::arg("value"))
      .def("add_operations", &add_operations)
      .def("add_order", &add_order)
      .def(
          "fail_line",
          [](Simulation& self, Picos at, std::uint32_t line, const py::object& faults) {
            self.add_incident(at, {Incident::Kind::kFaults, line, false, world::faults_of(faults)});
          },
          py::arg("at"), py::arg("line"), py::arg("faults"))
      .def(
          "fail_switch",
          [](Simulation& self, Picos at, std::uint32_t which, bool down) {
            self.add_incident(at, {Incident::Kind::kSwitch, which, down, {}});
          },
          py::arg("at"), py::arg("which"), py::arg("down"))
      .def(
          "fail_host",
          [](Simulation& self, Picos at, std::uint32_t which, bool down) {
            self.add_incident(at, {Incident::Kind::kHost, which, down, {}});
          },
          py::arg("at"), py::arg("which"), py::arg("down"))
      .def(
          "fail_program",
          [](Simulation& self, Picos at, std::uint32_t which, bool down) {
            self.add_incident(at, {Incident::Kind::kProgram, which, down, {}});
          },
          py::arg("at"), py::arg("which"), py::arg("down"))
      .def("add_stream", &Simulation::add_stream)
      .def("carry_trains", &Simulation::carry_trains)
      .def("start", &Simulation::start)
      .def("run", &Simulation::run, py::arg("events"), py::arg("end"),
           py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("now", [](const Simulation& self) { return self.fabric.world.now(); })
      .def_property_readonly("idle", &Simulation::idle)
      .def_property_readonly("events", &Simulation::events)
      .def_property_readonly("carried",
                             [](const Simulation& self) {
                               const auto& trains = self.trains();
                               return trains ? trains->skipped() : Picos{0};
                             })
      .def_property_readonly("compared",
                             [](const Simulation& self) {
                               const auto& trains = self.trains();
                               return trains ? trains->compared() : std::uint64_t{0};
                             })
      .def_property_readonly("left", [](const Simulation& self) { return self.operations.left(); })
      .def("times", &times)
      .def("line", &line_counts)
      .def("member", &member_counts)
      .def("drops", &drops)
      .def("occupancy", [](Simulation& self, std::uint32_t branch) {
        self.switches.settle();
        return self.switches.occupancy(branch).time();
      });
}

}  // namespace catchment::performance
