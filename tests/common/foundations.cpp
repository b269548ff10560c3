// The foundations for Python, so that tests can drive them with a clock of their own.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <string>
#include <vector>

#include "catchment/common/adaptive_patience.hpp"
#include "catchment/common/crc.hpp"
#include "catchment/common/internet_checksum.hpp"
#include "catchment/common/patience.hpp"
#include "catchment/common/serial.hpp"

namespace py = pybind11;
using namespace catchment;

namespace {

// A machine whose time passes only as the test says.
struct FakeMachine {
  static inline Nanos time = 0;
  static inline Nanos pause = 0;       // how long a relax() takes
  static inline Nanos time_slice = 0;  // how long a yield() takes
  static inline int yields = 0;
  static Nanos now() { return time; }
  static void relax() { time += pause; }
  static void yield() {
    time += time_slice;
    ++yields;
  }
};

py::tuple spin(AdaptivePatience& patience, Nanos now, Nanos pause, Nanos time_slice,
               const std::function<bool(Nanos)>& ready) {
  FakeMachine::time = now;
  FakeMachine::pause = pause;
  FakeMachine::time_slice = time_slice;
  FakeMachine::yields = 0;
  const bool found =
      spin_until<FakeMachine>(patience, [&ready] { return ready(FakeMachine::time); });
  return py::make_tuple(found, FakeMachine::time, FakeMachine::yields);
}

py::dict as_dict(const PatienceSettings& settings) {
  return py::dict(py::arg("spin") = settings.spin, py::arg("yield_after") = settings.yield_after,
                  py::arg("late_yield") = settings.late_yield,
                  py::arg("oversubscribed_for") = settings.oversubscribed_for,
                  py::arg("oversubscribed_most") = settings.oversubscribed_most,
                  py::arg("spin_always") = settings.spin_always);
}

const std::uint8_t* bytes_of(const std::string& data) {
  return reinterpret_cast<const std::uint8_t*>(data.data());
}

}  // namespace

PYBIND11_MODULE(_common, module) {
  py::enum_<Waiting>(module, "Waiting")
      .value("SPIN", Waiting::kSpin)
      .value("YIELD", Waiting::kYield)
      .value("SLEEP", Waiting::kSleep);
  py::class_<Patience>(module, "Patience")
      .def(py::init([](Nanos spin, Nanos yield_after, Nanos late_yield, Nanos oversubscribed_for,
                       Nanos oversubscribed_most, Nanos spin_always) {
             return std::make_unique<Patience>(
                 PatienceSettings{.spin = spin,
                                  .yield_after = yield_after,
                                  .late_yield = late_yield,
                                  .oversubscribed_for = oversubscribed_for,
                                  .oversubscribed_most = oversubscribed_most,
                                  .spin_always = spin_always});
           }),
           py::arg("spin"), py::arg("yield_after"), py::arg("late_yield"),
           py::arg("oversubscribed_for"), py::arg("oversubscribed_most"), py::arg("spin_always"))
      .def("next", &Patience::next, py::arg("found"), py::arg("now"))
      .def("oversubscribed", &Patience::oversubscribed, py::arg("now"))
      .def("yielded", &Patience::yielded, py::arg("before"), py::arg("after"))
      .def("give_way", &Patience::yield, py::arg("now"))
      .def("pass_time", &Patience::pass, py::arg("how"), py::arg("now"));
  module.def("now", &Processor::now);
  module.def("switch_patience", [] { return as_dict(kSwitchPatience); });
  module.def("reducer_patience", [](Nanos spin) { return as_dict(reducer_patience(spin)); });
  module.def("collective_patience", [](Nanos spin, bool own_processor) {
    return as_dict(collective_patience(spin, own_processor));
  });
  module.def("lock_patience",
             [](bool own_processor) { return as_dict(lock_patience(own_processor)); });
  module.def("processors", &Processor::count);
  module.def("allowed_processors", [] {
    std::vector<int> numbers;
    Processor::for_each([&](int number) { numbers.push_back(number); });
    return numbers;
  });
  module.def("go_to_processor", [](int to) {
    const bool went = Processor::go_to(to);
    return py::make_tuple(went, Processor::number());
  });
  py::class_<AdaptivePatience>(module, "AdaptivePatience")
      .def(py::init([](Nanos least_spin, Nanos most_spin, Nanos yield_after, Nanos late_yield,
                       int few_sleeps, int many_sleeps) {
             return AdaptivePatience({.least_spin = least_spin,
                                      .most_spin = most_spin,
                                      .yield_after = yield_after,
                                      .late_yield = late_yield,
                                      .few_sleeps = few_sleeps,
                                      .many_sleeps = many_sleeps});
           }),
           py::arg("least_spin"), py::arg("most_spin"), py::arg("yield_after"),
           py::arg("late_yield"), py::arg("few_sleeps"), py::arg("many_sleeps"))
      .def("spin_until", &spin, py::arg("now"), py::arg("pause"), py::arg("time_slice"),
           py::arg("ready"))
      .def("woken", &AdaptivePatience::woken, py::arg("now"));

  module.def("distance", &distance);
  module.def("newer", &newer);
  module.def("later", &later);
  module.def("earlier", &earlier);
  module.def("internet_checksum", [](const std::string& head, const std::string& tail) {
    const std::uint64_t sum = ones_sum(bytes_of(head), head.size());
    return static_cast<std::uint16_t>(~fold(ones_sum(bytes_of(tail), tail.size(), sum)));
  });
  module.def("crc32", [](const std::string& data) {
    return ~crc<std::uint32_t, 0xEDB8'8320U>(bytes_of(data), data.size(), 0xFFFF'FFFFU);
  });
}
