// Unix sockets of ports, and their paths as addresses.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <string>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/shm/error.hpp"

namespace catchment::shm {

/// A socket of the given kind that neither blocks nor is inherited. Throws ShmError.
inline FileDescriptor unix_socket(int kind) {
  FileDescriptor socket(::socket(AF_UNIX, kind | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) {
    throw ShmError("cannot make a unix socket", errno);
  }
  return socket;
}

/// Throws ShmError when a socket cannot have that path.
inline sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    throw ShmError(CATCHMENT_SHM_ARGUMENT, "'" + path + "': the path of a port has 1 to " +
                                               std::to_string(sizeof address.sun_path - 1) +
                                               " characters");
  }
  path.copy(address.sun_path, path.size());
  return address;
}

}  // namespace catchment::shm
