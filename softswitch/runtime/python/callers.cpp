#include "callers.hpp"

#include <fcntl.h>
#include <pybind11/stl.h>

#include <csignal>
#include <string>
#include <vector>

#include "caller.hpp"

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
  }
  return "unknown";
}

rt::InputFrame input(std::uint32_t port, const std::string& frame) {
  return {reinterpret_cast<const std::uint8_t*>(frame.data()),
          static_cast<std::uint32_t>(frame.size()), port};
}

/// (outcome, [(port, frame)], [line of the log])
py::tuple inject(Caller& caller, std::uint32_t port, const std::string& frame) {
  const rt::InputFrame in = input(port, frame);
  py::list out;
  const Outcome outcome = caller.run({&in, 1}, [&](const rt::OutFrame& left) {
    out.append(py::make_tuple(left.port,
                              py::bytes(reinterpret_cast<const char*>(left.data), left.length)));
    return true;
  });
  return py::make_tuple(name_of(outcome), out, caller.lines());
}

/// Runs the frames again and again, `rounds` times, or until they do not run.
std::string repeat(Caller& caller, const std::vector<std::pair<std::uint32_t, std::string>>& frames,
                   std::uint64_t rounds) {
  std::vector<rt::InputFrame> inputs;
  for (const auto& [port, frame] : frames) {
    inputs.push_back(input(port, frame));
  }
  Outcome outcome = Outcome::ran;
  for (std::uint64_t round = 0; round < rounds && outcome == Outcome::ran; ++round) {
    outcome = caller.run(inputs, [](const rt::OutFrame&) { return true; });
  }
  return name_of(outcome);
}

/// Runs one frame; the first that leaves ends this process, or stops it, with the lock.
std::string inject_and_raise(Caller& caller, std::uint32_t port, const std::string& frame,
                             int number) {
  const rt::InputFrame in = input(port, frame);
  return name_of(
      caller.run({&in, 1}, [number](const rt::OutFrame&) { return raise(number) == 0; }));
}

}  // namespace

void bind_callers(py::module_& module) {
  py::class_<Caller>(module, "Caller")
      .def(py::init(&attach))
      .def("inject", &inject)
      .def("repeat", &repeat)
      .def("inject_and_raise", &inject_and_raise);
}

}  // namespace catchment::softswitch
