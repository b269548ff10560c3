// The path of a port's socket as an address.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "catchment/shm/error.hpp"

namespace catchment::shm {

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
