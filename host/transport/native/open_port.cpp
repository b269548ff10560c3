#include "open_port.hpp"

#include <string>
#include <utility>

#include "binding_values.hpp"
#include "catchment/common/clock.hpp"
#include "shm_port.hpp"
#include "udp_port.hpp"

namespace py = pybind11;

namespace catchment::host {
namespace {

constexpr int kAttachPieceMs = 50;

// Attaches to the switch; it waits in short pieces, so that Ctrl-C ends it.
std::unique_ptr<Port> attach(const std::string& path, const UdpAddress& local,
                             const UdpAddress& peer, Nanos timeout) {
  const Nanos until = monotonic_now() + timeout;
  while (true) {
    try {
      const py::gil_scoped_release release;
      return std::make_unique<ShmPort>(path, local, peer, kAttachPieceMs);
    } catch (const AttachError& error) {
      if (error.final() || monotonic_now() >= until) throw;
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

}  // namespace

OpenPort open_port(const py::dict& fields, std::size_t longest, std::size_t window) {
  const UdpAddress local = address(fields["local"]);
  const UdpAddress peer = address(fields["switch"]);
  return as_os_error([&]() -> OpenPort {
    if (!fields["port"].is_none()) {
      const auto path = fields["port"].cast<std::string>();
      return {attach(path, local, peer, nanos(fields["timeout"])), local};
    }
    auto port = std::make_unique<UdpPort>(local, peer, longest, window);
    UdpAddress bound = port->local();
    return {std::move(port), std::move(bound)};
  });
}

}  // namespace catchment::host
