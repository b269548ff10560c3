// How a process is woken by others that have no connection to it: a datagram socket with a name
// that the file system knows nothing of.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "catchment/common/file_descriptor.hpp"

namespace catchment::shm {

/// Bytes that the longest name takes with its final zero.
inline constexpr std::size_t kBellName = 32;

/// Wakes the process that made it whenever anybody rings, for whatever reason: it looks once.
class Bell {
 public:
  /// Takes a name that nobody has. Throws ShmError.
  Bell();

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Readable when somebody has rung.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Takes back what was rung; not more than some of it, if it does not end.
  void drain() const;
  /// Gives a socket a name that tells the bell's. Throws ShmError.
  void lend_name(int socket);

 private:
  std::string name_;
  FileDescriptor socket_;
  std::uint64_t lent_ = 0;
};

/// The bell whose name a socket with this address tells; empty: none.
std::string bell_in(const sockaddr_un& address, socklen_t bytes);

/// Rings others' bells.
class Ringer {
 public:
  /// Throws ShmError.
  Ringer();

  /// Never blocks. False: nobody has that name, or this process cannot reach it.
  [[nodiscard]] bool ring(const std::string& name) const;

 private:
  FileDescriptor socket_;
};

}  // namespace catchment::shm
