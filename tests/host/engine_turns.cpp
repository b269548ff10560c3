#include "engine_turns.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "attendance.hpp"
#include "catchment/common/clock.hpp"
#include "engine.hpp"
#include "hub.hpp"

namespace py = pybind11;

using namespace catchment::host;
using catchment::kMillisecond;
using catchment::kSecond;
using catchment::monotonic_now;
using catchment::Nanos;

namespace {

constexpr std::uint32_t kLanes = 8;
constexpr Nanos kSpin = kMillisecond / 5;

/// A port on which frames come that nobody can use, to one thread alone, and which counts what that
/// thread does to have queued frames sent. It is armed by who sleeps on it, until a turn.
class BusyPort final : public Port {
 public:
  std::uint8_t* stage() override { return room_.data(); }
  void commit(std::size_t, std::span<const std::uint8_t>) override {}
  bool commit_in_place(std::span<std::uint8_t>) override {
    own = after_commit;
    return answers;
  }
  bool flush() override {
    flushed += static_cast<int>(mine());
    own_before_flush = own;
    own = after_flush;
    return answer != Flushed::kFull;
  }
  Flushed flush_if_free() override {
    offered += static_cast<int>(mine());
    return answer;
  }
  void discard() override { ++discarded; }
  std::span<const std::span<const std::uint8_t>> receive() override {
    armed.store(false);
    if (!mine() || coming == 0) return {};
    if (--coming == 0) ended.store(true);
    return frames_;
  }
  std::optional<std::span<const std::uint8_t>> receive_own() override {
    if (own == 0) return std::nullopt;
    --own;
    return frames_[0];
  }
  bool more() const override { return false; }
  bool may_sleep(bool, const std::atomic<int>&) override {
    armed.store(true);
    return true;
  }
  std::size_t path_bytes() const override { return room_.size(); }
  int descriptor() const override { return -1; }
  std::uint64_t errors() const override { return 0; }
  int last_error() const override { return 0; }
  std::uint64_t foreign() const override { return 0; }

  Flushed answer = Flushed::kLater;
  int coming = 0;   // batches
  int flushed = 0;  // calls that wait for other processes
  int offered = 0;  // calls that do not
  int discarded = 0;
  bool answers = false;      // there are some for its own engine once a frame was queued
  int own = 0;               // frames that the port has for its own engine
  int own_before_flush = 0;  // the same when it was last flushed
  int after_commit = 0;      // the same once a frame was queued
  int after_flush = 0;       // the same once it has been flushed
  std::atomic<bool> ended{false};
  std::atomic<bool> armed{false};

 private:
  bool mine() const { return std::this_thread::get_id() == thread_; }

  const std::thread::id thread_ = std::this_thread::get_id();
  std::array<std::uint8_t, 256> room_{};
  std::array<std::uint8_t, 1> frame_{};
  std::array<std::span<const std::uint8_t>, 1> frames_{frame_};
};

EngineConfig two_ranks() {
  return {.stream = {.name = "stream", .workers = 2, .slots = 2, .window = 2, .lanes = kLanes},
          .peer = "the switch",
          .hailed = {}};
}

/// An engine and its port.
class Turned {
 public:
  explicit Turned(std::unique_ptr<BusyPort> port = std::make_unique<BusyPort>())
      : port_(port.get()), engine_(two_ranks(), std::move(port)) {}

  BusyPort& port() { return *port_; }
  Engine& engine() { return engine_; }
  std::pair<int, int> counted() const { return {port_->flushed, port_->offered}; }

  void turn(bool comes, IfTaken taken, Flushed answer) {
    port_->coming = comes ? 1 : 0;
    port_->answer = answer;
    engine_.turn(monotonic_now(), taken);
  }

 private:
  BusyPort* port_;
  Engine engine_;
};

/// What a caller has done at the port when it has waited: until its operation was done, in the turn
/// that took the last of `batches`, or until its time was over.
std::pair<int, int> after_a_wait(int batches, Nanos time) {
  Turned turned;
  const auto hub = std::make_shared<Hub>(nullptr, kSpin);
  {
    const Hub::Turn mine(*hub);
    hub->add(turned.engine(), nullptr);
  }
  turned.port().coming = batches;
  const Nanos begun = monotonic_now();
  hub->wait(turned.port().ended, begun, begun + time);
  const auto counted = turned.counted();
  {
    const Hub::Turn mine(*hub);
    hub->remove(turned.engine());
  }
  hub->stop();
  return counted;
}

/// How often the queue is dropped of the port that an engine leaves, and of the one that it takes.
std::pair<int, int> after_a_change() {
  auto port = std::make_unique<BusyPort>();
  const BusyPort& left = *port;
  auto other = std::make_unique<BusyPort>();
  const BusyPort& taken = *other;
  Turned turned(std::move(port));
  const auto kept = turned.engine().reroute(std::move(other), 1, monotonic_now());
  return {left.discarded, taken.discarded};
}

/// The same as after a wait for an engine that goes while it has something queued.
std::pair<int, int> after_a_removal() {
  Turned turned;
  const auto hub = std::make_shared<Hub>(nullptr, kSpin);
  {
    const Hub::Turn mine(*hub);
    hub->add(turned.engine(), nullptr);
    turned.turn(true, IfTaken::kLater, Flushed::kLater);
    hub->remove(turned.engine());
  }
  hub->stop();
  return turned.counted();
}

/// Threads that sleep on a port for as long as nobody wakes them, or nearly: its engine has failed,
/// and so is never due.
class Sleeping {
 public:
  Sleeping() {
    const Hub::Turn mine(*hub_);
    turned_.engine().fail(CollectiveFailure{}, monotonic_now());
    hub_->add(turned_.engine(), nullptr);
  }
  ~Sleeping() {
    done_.store(true);
    hub_->wake();
    if (waiter_.joinable()) waiter_.join();
    {
      const Hub::Turn mine(*hub_);
      hub_->remove(turned_.engine());
    }
    hub_->stop();
  }
  Sleeping(const Sleeping&) = delete;
  Sleeping& operator=(const Sleeping&) = delete;

  void have_a_waiter() {
    waiter_ = std::thread([this] {
      const Nanos begun = monotonic_now();
      hub_->wait(done_, begun, begun + kHour, false);
      ended_.store(true);
    });
  }
  /// A turn of this thread, which does not sleep; whether the port is armed after it.
  bool turn() {
    const Hub::Turn mine(*hub_);
    hub_->turn(monotonic_now());
    return turned_.port().armed.load();
  }
  void hand_on(bool begun) { hub_->hand_on(begun); }
  void finish() {
    const Hub::Turn mine(*hub_);
    done_.store(true);
  }
  bool is_armed() const { return soon(turned_.port().armed); }
  bool has_ended() const { return soon(ended_); }

 private:
  static constexpr Nanos kHour = 3600 * kSecond;

  /// False: not within the time after which a test gives up.
  static bool soon(const std::atomic<bool>& happened) {
    const Nanos until = monotonic_now() + 20 * kSecond;
    while (!happened.load() && monotonic_now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return happened.load();
  }

  mutable Turned turned_;
  std::shared_ptr<Hub> hub_ = std::make_shared<Hub>(nullptr, kSpin, kHour);
  std::atomic<bool> done_{false};
  std::atomic<bool> ended_{false};
  std::thread waiter_;
};

}  // namespace

void add_engine_turns(py::module_& module) {
  py::enum_<Flushed>(module, "Flushed")
      .value("ALL", Flushed::kAll)
      .value("FULL", Flushed::kFull)
      .value("LATER", Flushed::kLater);
  py::class_<Attendance>(module, "Attendance")
      .def(py::init<>())
      .def("begin", &Attendance::begin)
      .def("come", &Attendance::come, py::kw_only(), py::arg("begun"), py::arg("now"))
      .def("leave", &Attendance::leave)
      .def("given", &Attendance::given)
      .def("miss", &Attendance::miss)
      .def_property_readonly("waiting", &Attendance::waiting)
      .def("rest", &Attendance::rest);
  py::class_<Turned>(module, "Turned")
      .def(py::init<>())
      .def(
          "turn",
          [](Turned& turned, bool comes, bool may_wait, Flushed answer) {
            turned.turn(comes, may_wait ? IfTaken::kWait : IfTaken::kLater, answer);
          },
          py::kw_only(), py::arg("comes"), py::arg("may_wait"), py::arg("answer"))
      .def("flush", [](Turned& turned) { turned.engine().flush(); })
      .def_property_readonly("counted", &Turned::counted)
      .def_property_readonly("unsent", [](Turned& turned) { return turned.engine().unsent(); })
      .def_property_readonly("blocked", [](Turned& turned) { return turned.engine().blocked(); });
  module.def("own_after_a_turn", [](int frames) {
    Turned turned;
    turned.port().after_flush = frames;
    turned.turn(false, IfTaken::kWait, Flushed::kAll);
    return turned.port().own;
  });
  module.def("own_before_a_flush", [](bool answers) {
    Turned turned;
    turned.port().after_commit = 3;
    turned.port().answers = answers;
    turned.engine().start(std::make_shared<Operation>(Call{}), monotonic_now());
    turned.turn(false, IfTaken::kWait, Flushed::kAll);
    return turned.port().own_before_flush;
  });
  const py::call_guard<py::gil_scoped_release> unlocked;
  py::class_<Sleeping>(module, "Sleeping")
      .def(py::init<>())
      .def("have_a_waiter", &Sleeping::have_a_waiter)
      .def("turn", &Sleeping::turn, unlocked)
      .def("hand_on", &Sleeping::hand_on, py::kw_only(), py::arg("begun"), unlocked)
      .def("finish", &Sleeping::finish, unlocked)
      .def_property_readonly("armed", py::cpp_function(&Sleeping::is_armed, unlocked))
      .def_property_readonly("ended", py::cpp_function(&Sleeping::has_ended, unlocked));
  module.def("after_a_wait", &after_a_wait, py::call_guard<py::gil_scoped_release>());
  module.def("after_a_change", &after_a_change);
  module.def("after_a_removal", &after_a_removal, py::call_guard<py::gil_scoped_release>());
}
