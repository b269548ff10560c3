#include "all_reducer_binding.hpp"

#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "all_reducer.hpp"
#include "binding_values.hpp"
#include "catchment/common/clock.hpp"
#include "open_port.hpp"
#include "tagged_port.hpp"

namespace py = pybind11;

namespace catchment::host {
namespace {

// How long a wait goes without looking for signals.
constexpr Nanos kSignalInterval = 50'000'000;
constexpr Nanos kLongestSpin = 60'000'000'000;

class BoundAllReducer {
 public:
  BoundAllReducer(AllReducerConfig config, OpenPort open)
      : process_(getpid()),
        local_(std::move(open.local)),
        reducer_(std::move(config), std::move(open.port)) {}

  // Refuses a child after fork(): two processes cannot share one worker's rounds.
  AllReducer& usable() {
    if (getpid() != process_) {
      throw std::runtime_error("the all-reducer belongs to the process that forked this one");
    }
    return reducer_;
  }
  void close(double linger) {
    if (getpid() != process_) return;
    const double nanos = std::clamp(linger, 0.0, 60.0) * kNanosPerSecond;
    const py::gil_scoped_release release;
    reducer_.close(static_cast<Nanos>(nanos));
  }
  void interrupt() { reducer_.interrupt(); }
  // Seconds and sequence number of what has not moved for `least` seconds.
  std::optional<std::pair<double, Seq>> standstill(double least) const {
    const auto found = reducer_.standstill(static_cast<Nanos>(least * kNanosPerSecond));
    if (!found) return std::nullopt;
    return std::pair{seconds(found->duration), found->seq};
  }
  // Keeps the memory of a reduction that its owner has dropped while it is under way.
  void keep(std::shared_ptr<Reduction> reduction, py::object memory) {
    std::erase_if(kept_, [](const auto& entry) { return entry.first->done.load(); });
    kept_.emplace_back(std::move(reduction), std::move(memory));
  }
  py::object failure() const {
    // Who waits has the reducer for a while.
    const auto failure = [this] {
      const py::gil_scoped_release unlocked;
      return reducer_.failure();
    }();
    return to_dict(failure);
  }
  py::dict stats() const { return to_dict(reducer_.stats()); }
  std::pair<std::string, int> local() const { return {local_.host, local_.port}; }

 private:
  pid_t process_;
  UdpAddress local_;
  AllReducer reducer_;
  std::vector<std::pair<std::shared_ptr<Reduction>, py::object>> kept_;  // under the GIL
};

// An all-reduce of one pair of buffers, as often as the caller likes.
class BoundReduction {
 public:
  BoundReduction(std::shared_ptr<BoundAllReducer> reducer, std::uintptr_t source,
                 std::uintptr_t target, std::size_t elements, int dtype, int exponent,
                 py::object keepalive)
      : reducer_(std::move(reducer)),
        reduction_(std::make_shared<Reduction>()),
        keepalive_(std::move(keepalive)) {
    const auto type = static_cast<wire::DataType>(dtype);
    reduction_->source = {reinterpret_cast<std::uint8_t*>(source), elements, type};
    reduction_->target = {reinterpret_cast<std::uint8_t*>(target), elements, type};
    reduction_->exponent = exponent;
  }

  BoundReduction(const BoundReduction&) = delete;
  BoundReduction& operator=(const BoundReduction&) = delete;
  ~BoundReduction() {
    if (!reduction_->done) reducer_->keep(reduction_, std::move(keepalive_));
  }

  void start() {
    AllReducer& reducer = reducer_->usable();
    const py::gil_scoped_release release;
    if (!reduction_->done) throw std::runtime_error("this reduction is still under way");
    reducer.start(reduction_);
  }

  bool wait(double limit) {
    AllReducer& reducer = reducer_->usable();
    const Nanos until =
        monotonic_now() + static_cast<Nanos>(std::clamp(limit, 0.0, 1e9) * kNanosPerSecond);
    for (;;) {
      {
        const py::gil_scoped_release release;
        const Nanos left = std::max<Nanos>(until - monotonic_now(), 0);
        if (reducer.wait(*reduction_, std::min(left, kSignalInterval))) return true;
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (monotonic_now() >= until) return false;
    }
  }

  // Both at once; true when it succeeded.
  bool run() {
    start();
    wait(1e9);
    return !reduction_->outcome.failure;
  }

  const Reduction& reduction() const { return *reduction_; }

 private:
  std::shared_ptr<BoundAllReducer> reducer_;
  std::shared_ptr<Reduction> reduction_;
  py::object keepalive_;
};

std::shared_ptr<BoundAllReducer> make(const py::dict& fields) {
  AllReducerConfig config;
  config.stream =
      stream("slots", fields["stream"].cast<py::dict>(), fields["window"].cast<std::uint32_t>());
  config.wid = fields["wid"].cast<std::uint8_t>();
  const UdpAddress peer = address(fields["switch"]);
  config.peer = peer.host + ":" + std::to_string(peer.port);
  config.timeout = nanos(fields["timeout"]);
  config.spin = std::min(nanos(fields["spin"]), kLongestSpin);
  const std::size_t longest = longest_frame(config);
  std::vector<std::pair<std::uint16_t, TagKey>> keys;
  if (config.stream.key) keys.emplace_back(config.stream.gen, *config.stream.key);
  OpenPort open = open_port(fields, longest + (keys.empty() ? 0 : wire::kTagBytes),
                            2 * std::size_t{config.stream.window});
  open.port = with_tags(std::move(open.port), std::move(keys), longest);
  return as_os_error(
      [&] { return std::make_shared<BoundAllReducer>(std::move(config), std::move(open)); });
}

template <typename Get>
auto once_done(Get get) {
  return [get](const BoundReduction& bound) {
    const Reduction& reduction = bound.reduction();
    return reduction.done ? get(reduction.outcome) : decltype(get(reduction.outcome)){};
  };
}

}  // namespace

void bind_all_reducer(py::module_& module) {
  py::class_<BoundAllReducer, std::shared_ptr<BoundAllReducer>>(module, "AllReducer")
      .def(py::init(&make), py::arg("config"))
      .def("failure", &BoundAllReducer::failure)
      .def("stats", &BoundAllReducer::stats)
      .def("interrupt", &BoundAllReducer::interrupt)
      .def("standstill", &BoundAllReducer::standstill, py::arg("least"))
      .def("close", &BoundAllReducer::close, py::arg("linger"))
      .def_property_readonly("local", &BoundAllReducer::local);

  py::class_<BoundReduction>(module, "Reduction")
      .def(py::init<std::shared_ptr<BoundAllReducer>, std::uintptr_t, std::uintptr_t, std::size_t,
                    int, int, py::object>())
      .def("start", &BoundReduction::start)
      .def("wait", &BoundReduction::wait, py::arg("limit"))
      .def("run", &BoundReduction::run)
      .def_property_readonly("done",
                             [](const BoundReduction& r) { return r.reduction().done.load(); })
      .def_property_readonly("failure",
                             [](const BoundReduction& r) -> py::object {
                               if (!r.reduction().done) return py::none();
                               return to_dict(r.reduction().outcome.failure);
                             })
      .def_property_readonly("flags", once_done([](const Outcome& o) { return int{o.flags}; }))
      .def_property_readonly("max_raw", once_done([](const Outcome& o) { return o.max_raw; }))
      .def_property_readonly("saturated", once_done([](const Outcome& o) { return o.saturated; }))
      .def_property_readonly("nonfinite", once_done([](const Outcome& o) { return o.nonfinite; }))
      .def_property_readonly("latency",
                             once_done([](const Outcome& o) { return seconds(o.latency); }));
}

}  // namespace catchment::host
