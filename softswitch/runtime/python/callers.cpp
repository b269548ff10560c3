#include "callers.hpp"

#include <fcntl.h>
#include <pybind11/stl.h>

#include <array>
#include <csignal>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "caller.hpp"
#include "caller_port.hpp"
#include "catchment/common/processor.hpp"
#include "catchment/shm/insider.hpp"
#include "catchment/softswitch/enter.hpp"

namespace py = pybind11;

namespace catchment::softswitch {
namespace {

std::unique_ptr<Caller> attach(pid_t owner, int descriptor) {
  const std::string path = "/proc/" + std::to_string(owner) + "/fd/" + std::to_string(descriptor);
  auto caller = Caller::attach(FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC)), owner);
  if (!caller.ok()) {
    throw py::value_error(caller.status().message());
  }
  return std::move(caller.value());
}

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::ran:
      return "ran";
    case Outcome::torn:
      return "torn";
    case Outcome::busy:
      return "busy";
    case Outcome::no_program:
      return "no program";
    case Outcome::closed:
      return "closed";
    case Outcome::refused:
      return "refused";
  }
  return "unknown";
}

rt::InputFrame input(std::uint32_t port, const std::string& frame) {
  return {reinterpret_cast<const std::uint8_t*>(frame.data()),
          static_cast<std::uint32_t>(frame.size()), port};
}

/// Gives what leaves to a function, and keeps lines of the log. `shares`: who has the lock may need
/// the processor.
template <class Leave>
class FunctionExit final : public Exit {
 public:
  explicit FunctionExit(Leave leave, bool shares = false)
      : leave_(std::move(leave)), shares_(shares) {}

  bool shares_processor() override {
    ++asked;
    return shares_;
  }
  Left leave(const rt::OutFrame& frame) override {
    leave_(frame);
    return Left::sent;
  }
  void digest(const DigestMessage&) override {}
  void line(const std::string& text) override { lines.push_back(text); }
  void step_limit(std::uint32_t, const char* where) override { lines.emplace_back(where); }

  std::vector<std::string> lines;
  int asked = 0;  // whether it shares its processor

 private:
  Leave leave_;
  bool shares_;
};

/// (outcome, [(port, frame)], [line of the log])
py::tuple inject(Caller& caller, std::uint32_t port, const std::string& frame) {
  const rt::InputFrame in = input(port, frame);
  py::list out;
  FunctionExit exit([&](const rt::OutFrame& left) {
    out.append(py::make_tuple(left.port,
                              py::bytes(reinterpret_cast<const char*>(left.data), left.length)));
  });
  const Outcome outcome = caller.run({&in, 1}, exit);
  return py::make_tuple(name_of(outcome), out, exit.lines);
}

/// (outcome, how often the caller asked whether it shares its processor)
py::tuple inject_beside(Caller& caller, std::uint32_t port, const std::string& frame, bool shares) {
  const rt::InputFrame in = input(port, frame);
  FunctionExit exit([](const rt::OutFrame&) {}, shares);
  const Outcome outcome = caller.run({&in, 1}, exit);
  return py::make_tuple(name_of(outcome), exit.asked);
}

/// Runs the frames again and again, `rounds` times, or until they do not run.
std::string repeat(Caller& caller, const std::vector<std::pair<std::uint32_t, std::string>>& frames,
                   std::uint64_t rounds) {
  std::vector<rt::InputFrame> inputs;
  for (const auto& [port, frame] : frames) {
    inputs.push_back(input(port, frame));
  }
  FunctionExit exit([](const rt::OutFrame&) {});
  Outcome outcome = Outcome::ran;
  for (std::uint64_t round = 0; round < rounds && outcome == Outcome::ran; ++round) {
    outcome = caller.run(inputs, exit);
  }
  return name_of(outcome);
}

/// Runs one frame; the first that leaves ends this process, or stops it, with the lock.
std::string inject_and_raise(Caller& caller, std::uint32_t port, const std::string& frame,
                             int number) {
  const rt::InputFrame in = input(port, frame);
  FunctionExit exit([number](const rt::OutFrame&) { static_cast<void>(raise(number)); });
  return name_of(caller.run({&in, 1}, exit));
}

/// Runs one frame; there is no memory any more when the first leaves.
std::string inject_and_throw(Caller& caller, std::uint32_t port, const std::string& frame) {
  const rt::InputFrame in = input(port, frame);
  FunctionExit exit([](const rt::OutFrame&) { throw std::bad_alloc(); });
  return name_of(caller.run({&in, 1}, exit));
}

/// The peer's end of a shared-memory port, let in where the switch lets it in.
class InsidePort {
 public:
  InsidePort(const std::string& path, int timeout_ms)
      : port_(shm::attach(path, timeout_ms, [this](shm::Invitation invitation) {
          shm::Entered entered = enter(std::move(invitation));
          caller_ = static_cast<CallerPort*>(entered.insider.get());
          return entered;
        })) {}

  int send(const std::vector<std::string>& frames) {
    std::vector<catchment_shm_frame> out;
    for (const std::string& frame : frames) {
      out.push_back({const_cast<char*>(frame.data()), static_cast<std::uint32_t>(frame.size()), 0});
    }
    return checked(catchment_shm_send(port_.get(), out.data(), static_cast<int>(out.size())));
  }
  /// Frames for flush_if_free(). How many there was room for.
  int queue(const std::vector<std::string>& frames) {
    int done = 0;
    for (const std::string& frame : frames) {
      void* const room = catchment_shm_reserve(port_.get());
      if (room == nullptr) {
        break;
      }
      std::ranges::copy(frame, static_cast<char*>(room));
      checked(catchment_shm_commit(port_.get(), static_cast<std::uint32_t>(frame.size())));
      ++done;
    }
    return done;
  }
  /// The same for frames that stay where they lie until others are queued so; whether the peer has
  /// some for itself behind each of them.
  std::vector<bool> queue_in_place(const std::vector<std::string>& frames) {
    in_place_ = frames;
    std::vector<bool> own;
    for (const std::string& frame : in_place_) {
      if (catchment_shm_reserve(port_.get()) == nullptr) {
        break;
      }
      const std::span bytes(reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size());
      own.push_back(checked(shm::commit_in_place(port_.get(), bytes)) > 0);
    }
    return own;
  }
  bool flush_if_free() { return checked(shm::flush_if_free(port_.get())) != 0; }
  /// The frames that are there, or the first that come within so many seconds.
  py::list receive(double timeout) {
    std::array<catchment_shm_frame, 64> frames{};
    const auto room = static_cast<int>(frames.size());
    // What was taken before goes back to the ring before the port waits.
    int count = checked(catchment_shm_peek(port_.get(), frames.data(), room));
    if (count == 0) {
      const py::gil_scoped_release release;
      catchment_shm_wait(port_.get(), CATCHMENT_SHM_FRAMES,
                         static_cast<std::int64_t>(timeout * 1e6));
      count = catchment_shm_peek(port_.get(), frames.data(), room);
    }
    return copied(frames, checked(count));
  }
  /// Frames that the peer has sent to itself, before others that came earlier; at most so many.
  py::list receive_own(std::size_t most) {
    py::list out;
    while (out.size() < most) {
      const auto frame = shm::own_frame(port_.get());
      if (frame.empty()) {
        break;
      }
      shm::take_own(port_.get());
      out.append(py::bytes(reinterpret_cast<const char*>(frame.data()), frame.size()));
    }
    return out;
  }
  /// Whether a frame is there, or comes within so many seconds.
  bool waits(double timeout) {
    const py::gil_scoped_release release;
    return catchment_shm_wait(port_.get(), CATCHMENT_SHM_FRAMES,
                              static_cast<std::int64_t>(timeout * 1e6)) > 0;
  }
  /// The frames that are there, as they are once something else was done.
  py::list look_on(const py::function& work) {
    std::array<catchment_shm_frame, 64> frames{};
    const int count =
        checked(catchment_shm_peek(port_.get(), frames.data(), static_cast<int>(frames.size())));
    work();
    return copied(frames, count);
  }
  [[nodiscard]] bool inside() const { return shm::inside(port_.get()); }
  [[nodiscard]] bool shares_processor() { return caller_->shares_processor(); }
  /// (the processor before, whether the thread was moved, the processor after)
  py::tuple move_apart() {
    const int before = Processor::number();
    const bool moved = shm::move_apart(port_.get());
    return py::make_tuple(before, moved, Processor::number());
  }
  [[nodiscard]] std::uint64_t attachments() const {
    catchment_shm_info info{};
    catchment_shm_get_info(port_.get(), &info);
    return info.attachments;
  }

 private:
  static py::list copied(std::span<const catchment_shm_frame> frames, int count) {
    py::list out;
    for (const catchment_shm_frame& frame : frames.first(static_cast<std::size_t>(count))) {
      out.append(py::bytes(static_cast<const char*>(frame.data), frame.length));
    }
    return out;
  }
  int checked(int status) const {
    if (status < 0) {
      throw std::runtime_error(catchment_shm_error(port_.get()));
    }
    return status;
  }

  std::vector<std::string> in_place_;
  CallerPort* caller_ = nullptr;  // as long as it is inside
  shm::OwnPort port_;
};

}  // namespace

void bind_callers(py::module_& module) {
  py::class_<InsidePort>(module, "InsidePort")
      .def(py::init<const std::string&, int>(), py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("inside", &InsidePort::inside)
      .def("send", &InsidePort::send)
      .def("queue", &InsidePort::queue)
      .def("flush_if_free", &InsidePort::flush_if_free)
      .def("receive", &InsidePort::receive)
      .def("queue_in_place", &InsidePort::queue_in_place)
      .def("receive_own", &InsidePort::receive_own)
      .def("waits", &InsidePort::waits)
      .def("look_on", &InsidePort::look_on)
      .def("shares_processor", &InsidePort::shares_processor)
      .def("move_apart", &InsidePort::move_apart)
      .def("attachments", &InsidePort::attachments);
  py::class_<Caller>(module, "Caller")
      .def(py::init(&attach))
      .def("inject", &inject)
      .def("inject_beside", &inject_beside)
      .def("repeat", &repeat)
      .def("inject_and_raise", &inject_and_raise)
      .def("inject_and_throw", &inject_and_throw);
}

}  // namespace catchment::softswitch
