// Socket files that processes left behind when they ended.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "catchment/common/file_descriptor.hpp"

namespace catchment {

/// Removes the socket file at `address` if no process has it any more. Returns what is in the way
/// of a new one, for a message; nothing: the path is free.
inline std::optional<std::string> remove_leftover_socket(const sockaddr_un& address) {
  struct stat status{};
  if (lstat(address.sun_path, &status) != 0) {
    return std::nullopt;
  }
  if (!S_ISSOCK(status.st_mode)) {
    return "exists and is not a socket; choose another path";
  }
  // A listener that is stopped may have as many in its queue as it takes: it must not be waited
  // for.
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno == EAGAIN || errno == EPROTOTYPE) {
    return "another process listens there";
  }
  if (errno != ECONNREFUSED) {
    return std::string("cannot tell whether it is in use: ") + std::strerror(errno);
  }
  if (unlink(address.sun_path) != 0 && errno != ENOENT) {
    return std::string("cannot remove what a process that has ended left there: ") +
           std::strerror(errno);
  }
  return std::nullopt;
}

}  // namespace catchment
