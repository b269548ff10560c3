// The port that a Python caller asks for: UDP, or a shared-memory port of a switch on this machine.
#pragma once

#include <pybind11/pybind11.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <system_error>

#include "port.hpp"
#include "udp_address.hpp"

namespace catchment::host {

struct OpenPort {
  std::unique_ptr<Port> port;
  UdpAddress local;  // as bound
};

// fields: local, switch, port (a path or None), timeout in seconds.  longest: bytes of a frame;
// window: frames to hold.  Throws AttachError, and OSError as a Python exception.
OpenPort open_port(const pybind11::dict& fields, std::size_t longest, std::size_t window);

// std::system_error becomes Python's OSError.
template <typename Make>
auto as_os_error(Make make) {
  try {
    return make();
  } catch (const std::system_error& error) {
    errno = error.code().value();
    PyErr_SetFromErrno(PyExc_OSError);
    throw pybind11::error_already_set();
  }
}

}  // namespace catchment::host
