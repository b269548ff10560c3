// The Dataplane as a Python module; softswitch/inprocess.py wraps it in names.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <ctime>

#include "callers.hpp"
#include "catchment/softswitch/dataplane.hpp"
#include "catchment/softswitch/packets.hpp"
#include "catchment/softswitch/rt/wire_bits.hpp"
#include "faults.hpp"
#include "fuzz.hpp"
#include "super_packets.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace catchment::softswitch {
namespace {

/// Values are Python bytes everywhere: pybind11 would make a std::string into a str.
void require(const Status& status) {
  if (!status.ok()) {
    const py::object error = py::module_::import("catchment.softswitch.errors").attr("SwitchError");
    PyErr_SetObject(error.ptr(), error(static_cast<int>(status.code()), status.message()).ptr());
    throw py::error_already_set();
  }
}

template <class T>
T take(Result<T> result) {
  require(result.status());
  return std::move(result.value());
}

ActionCall to_call(std::uint32_t action_id, const py::dict& params) {
  ActionCall call{action_id, {}};
  for (const auto& [id, value] : params) {
    call.params.push_back({id.cast<std::uint32_t>(), value.cast<std::string>()});
  }
  return call;
}

py::tuple from_call(const ActionCall& call) {
  py::dict params;
  for (const ParamValue& param : call.params) {
    params[py::int_(param.param_id)] = py::bytes(param.value);
  }
  return py::make_tuple("action", call.action_id, params);
}

/// ("action", id, {param: bytes}) | ("member", id) | ("group", id) | None
TableAction to_action(const py::object& object) {
  if (object.is_none()) {
    return {};
  }
  const auto tuple = object.cast<py::tuple>();
  const auto kind = tuple[0].cast<std::string>();
  const auto id = tuple[1].cast<std::uint32_t>();
  if (kind == "action") {
    return to_call(id, tuple[2].cast<py::dict>());
  }
  if (kind == "member") {
    return MemberRef{id};
  }
  return GroupRef{id};
}

py::object from_action(const TableAction& action) {
  if (const auto* call = std::get_if<ActionCall>(&action)) {
    return from_call(*call);
  }
  if (const auto* member = std::get_if<MemberRef>(&action)) {
    return py::make_tuple("member", member->member_id);
  }
  if (const auto* group = std::get_if<GroupRef>(&action)) {
    return py::make_tuple("group", group->group_id);
  }
  return py::none();
}

/// [(field_id, kind, value, mask or high, prefix_len)]
std::vector<FieldMatch> to_match(const py::list& fields) {
  std::vector<FieldMatch> out;
  for (const auto& item : fields) {
    const auto tuple = item.cast<py::tuple>();
    out.push_back({tuple[0].cast<std::uint32_t>(), static_cast<MatchKind>(tuple[1].cast<int>()),
                   tuple[2].cast<std::string>(), tuple[3].cast<std::string>(),
                   tuple[4].cast<std::uint32_t>()});
  }
  return out;
}

py::list from_match(const std::vector<FieldMatch>& fields) {
  py::list out;
  for (const FieldMatch& field : fields) {
    out.append(py::make_tuple(field.field_id, static_cast<int>(field.kind), py::bytes(field.value),
                              py::bytes(field.mask), field.prefix_len));
  }
  return out;
}

TableEntry to_entry(std::uint32_t table_id, const py::list& match, std::int32_t priority,
                    const py::object& action, bool is_default, std::int64_t idle_timeout_ns) {
  TableEntry entry;
  entry.table_id = table_id;
  entry.match = to_match(match);
  entry.priority = priority;
  entry.action = to_action(action);
  entry.is_default = is_default;
  entry.idle_timeout_ns = idle_timeout_ns;
  return entry;
}

py::dict from_entry(const TableEntry& entry) {
  py::dict out("table_id"_a = entry.table_id, "match"_a = from_match(entry.match),
               "priority"_a = entry.priority, "action"_a = from_action(entry.action),
               "is_default"_a = entry.is_default, "is_const"_a = entry.is_const);
  if (entry.counter) {
    out["counter"] = py::make_tuple(entry.counter->packets, entry.counter->bytes);
  }
  return out;
}

std::vector<Replica> to_replicas(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& list) {
  std::vector<Replica> out;
  for (const auto& [port, instance] : list) {
    out.push_back({port, instance});
  }
  return out;
}

void bind_tables(py::class_<Dataplane>& cls) {
  cls.def("insert",
          [](Dataplane& d, std::uint32_t table, const py::list& match, std::int32_t priority,
             const py::object& action, std::int64_t idle) {
            require(d.insert(to_entry(table, match, priority, action, false, idle)));
          })
      .def("modify",
           [](Dataplane& d, std::uint32_t table, const py::list& match, std::int32_t priority,
              const py::object& action, std::int64_t idle) {
             require(d.modify(to_entry(table, match, priority, action, false, idle)));
           })
      .def("remove",
           [](Dataplane& d, std::uint32_t table, const py::list& match, std::int32_t priority) {
             require(d.remove(to_entry(table, match, priority, py::none(), false, 0)));
           })
      .def("set_default",
           [](Dataplane& d, std::uint32_t table, const py::object& action) {
             require(d.modify(to_entry(table, py::list(), 0, action, true, 0)));
           })
      .def("entries",
           [](Dataplane& d, std::uint32_t table) {
             TableEntry filter;
             filter.table_id = table;
             py::list out;
             for (const TableEntry& entry : take(d.read(filter))) {
               out.append(from_entry(entry));
             }
             return out;
           })
      .def("insert_member",
           [](Dataplane& d, std::uint32_t profile, std::uint32_t member, std::uint32_t action,
              const py::dict& params) {
             require(d.insert(ProfileMember{profile, member, to_call(action, params)}));
           })
      .def("insert_group",
           [](Dataplane& d, std::uint32_t profile, std::uint32_t group,
              const std::vector<std::pair<std::uint32_t, std::int32_t>>& members) {
             ProfileGroup entity{profile, group, {}, 0};
             for (const auto& [id, weight] : members) {
               entity.members.push_back({id, weight, {}});
             }
             require(d.insert(entity));
           })
      .def("write_value_set",
           [](Dataplane& d, std::uint32_t id, const std::vector<py::list>& members) {
             ValueSetEntry entry{id, {}};
             for (const py::list& member : members) {
               entry.members.push_back(to_match(member));
             }
             require(d.write(entry));
           });
}

/// Insert, or modify what is there.
template <class Entity>
void put(Dataplane& dataplane, const Entity& entity) {
  const Status status = dataplane.insert(entity);
  require(status.code() == StatusCode::already_exists ? dataplane.modify(entity) : status);
}

void bind_state(py::class_<Dataplane>& cls) {
  cls.def("read_register",
          [](Dataplane& d, std::uint32_t id, std::optional<std::uint64_t> index) {
            py::list out;
            for (const RegisterCell& cell : take(d.read_register(id, index))) {
              out.append(py::bytes(cell.value));
            }
            return out;
          })
      .def("write_register",
           [](Dataplane& d, std::uint32_t id, std::optional<std::uint64_t> index,
              const std::string& value) { require(d.write_register(id, index, value)); })
      .def("read_counter",
           [](Dataplane& d, std::uint32_t id, std::optional<std::uint64_t> index) {
             py::list out;
             for (const CounterCell& cell : take(d.read_counter(id, index))) {
               out.append(py::make_tuple(cell.value.packets, cell.value.bytes));
             }
             return out;
           })
      .def("write_counter",
           [](Dataplane& d, std::uint32_t id, std::optional<std::uint64_t> index,
              std::uint64_t packets,
              std::uint64_t bytes) { require(d.write_counter(id, index, {packets, bytes})); })
      .def("write_meter",
           [](Dataplane& d, std::uint32_t id, std::optional<std::uint64_t> index, std::int64_t cir,
              std::int64_t cburst, std::int64_t pir, std::int64_t pburst) {
             require(d.write_meter(id, index, MeterConfig{cir, cburst, pir, pburst}));
           })
      .def("put_multicast_group",
           [](Dataplane& d, std::uint32_t group,
              const std::vector<std::pair<std::uint32_t, std::uint32_t>>& replicas) {
             put(d, MulticastGroup{group, to_replicas(replicas), {}});
           })
      .def("remove_multicast_group",
           [](Dataplane& d, std::uint32_t group) {
             require(d.remove(MulticastGroup{group, {}, {}}));
           })
      .def("put_clone_session",
           [](Dataplane& d, std::uint32_t session,
              const std::vector<std::pair<std::uint32_t, std::uint32_t>>& replicas,
              std::int32_t length) {
             put(d, CloneSession{session, to_replicas(replicas), 0, length});
           })
      .def("strays", &Dataplane::strays)
      .def("state_descriptor", &Dataplane::state_descriptor)
      .def("state_bytes", &Dataplane::state_bytes)
      .def("statistics", [](Dataplane& d, std::uint32_t port) {
        const PortStatistics s = d.statistics(port);
        py::dict drops;
        for (std::size_t i = 0; i < kDropCauses; ++i) {
          drops[drop_cause_name(static_cast<DropCause>(i))] = s.drops[i];
        }
        return py::dict("rx_packets"_a = s.rx_packets, "rx_bytes"_a = s.rx_bytes,
                        "tx_packets"_a = s.tx_packets, "tx_bytes"_a = s.tx_bytes,
                        "drops"_a = drops);
      });
}

/// Seconds that this thread has run: on a busy machine the clock on the wall says nothing of the
/// switch.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Runs frames through a Dataplane in batches, as a packet thread does, and throws away what
/// leaves. Before every round but the first the big-endian 32-bit number at `offset` of each frame
/// grows by `step`. (seconds, frames out)
std::pair<double, std::uint64_t> replay(
    Dataplane& dataplane, const std::vector<std::pair<std::uint32_t, std::string>>& frames,
    std::size_t rounds, std::size_t offset, std::uint32_t step) {
  constexpr std::size_t kBatch = 64;
  std::vector<std::string> bytes;
  std::vector<rt::InputFrame> inputs;
  for (const auto& [port, frame] : frames) {
    bytes.push_back(frame);
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    inputs.push_back({reinterpret_cast<const std::uint8_t*>(bytes[i].data()),
                      static_cast<std::uint32_t>(bytes[i].size()), frames[i].first});
  }
  Packets& packets = dataplane.packets();
  std::vector<rt::OutFrame> out;
  std::uint64_t left = 0;
  const double start = thread_seconds();
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; round > 0 && i < bytes.size(); ++i) {
      auto* p = reinterpret_cast<std::uint8_t*>(bytes[i].data()) + offset;
      rt::store_be<std::uint32_t>(p, rt::load_be<std::uint32_t>(p) + step);
    }
    for (std::size_t at = 0; at < inputs.size(); at += kBatch) {
      packets.process({inputs.data() + at, std::min(kBatch, inputs.size() - at)}, out);
      left += out.size();
      packets.sent(0, 0, 0, out);
      out.clear();
    }
  }
  return {thread_seconds() - start, left};
}

/// The same walk over the frames doing nothing but a copy of each into one buffer. (seconds)
double copy_limit(const std::vector<std::pair<std::uint32_t, std::string>>& frames,
                  std::size_t rounds) {
  std::vector<char> buffer(65536);
  const double start = thread_seconds();
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const auto& [port, frame] : frames) {
      std::memcpy(buffer.data(), frame.data(), frame.size());
      asm volatile("" : : "r"(buffer.data()) : "memory");
    }
  }
  return thread_seconds() - start;
}

}  // namespace

PYBIND11_MODULE(_softswitch, module) {
  bind_callers(module);
  module.def("replay", &replay);
  module.def("copy_limit", &copy_limit);
  module.def("fuzz",
             [](Dataplane& d, const std::vector<std::pair<std::uint32_t, std::string>>& seeds,
                std::uint64_t count, std::uint32_t ports, std::uint64_t seed) {
               const FuzzReport report = fuzz(d, seeds, count, ports, seed);
               py::dict drops;
               for (std::size_t i = 0; i < kDropCauses; ++i) {
                 drops[drop_cause_name(static_cast<DropCause>(i))] = report.drops[i];
               }
               return py::make_tuple(report.in, report.out, drops);
             });
  py::class_<Dataplane> cls(module, "Dataplane");
  module.attr("DEFAULT_MAX_STEPS") = rt::kDefaultMaxSteps;
  module.attr("MOST_MAX_STEPS") = rt::kMostMaxSteps;
  cls.def(py::init([](std::uint64_t seed, std::uint32_t max_steps, bool in_callers) {
            DataplaneOptions options;
            options.random_seed = seed;
            options.max_steps = max_steps;
            options.in_callers = in_callers;
            return std::make_unique<Dataplane>(options);
          }),
          "seed"_a = 0, "max_steps"_a = rt::kDefaultMaxSteps, "in_callers"_a = false)
      .def("load", [](Dataplane& d, const std::string& path) { require(d.load(path)); })
      .def("inject",
           [](Dataplane& d, std::uint32_t port, const py::bytes& frame) {
             py::list out;
             for (const OutputFrame& f : take(d.inject(port, std::string_view(frame)))) {
               out.append(py::make_tuple(f.port, py::bytes(f.bytes)));
             }
             return out;
           })
      .def("expire_idle", &Dataplane::expire_idle)
      .def("on_digest",
           [](Dataplane& d, const py::function& hook) {
             d.on_digest([hook](DigestMessage&& message) {
               py::list members;
               for (const std::string& member : message.members) {
                 members.append(py::bytes(member));
               }
               hook(message.digest_id, members);
             });
           })
      .def("on_log",
           [](Dataplane& d, const py::function& hook) {
             d.on_log([hook](const std::string& text) { hook(text); });
           })
      .def("on_step_limit",
           [](Dataplane& d, const py::function& hook) {
             d.on_step_limit([hook](const std::string& text) { hook(text); });
           })
      .def("on_idle_timeout", [](Dataplane& d, const py::function& hook) {
        d.on_idle_timeout([hook](IdleNotification&& note) { hook(from_entry(note.entry)); });
      });
  bind_tables(cls);
  bind_state(cls);
  bind_faults(module);
  bind_super_packets(module);
}

}  // namespace catchment::softswitch
