// Names of Unix sockets that are in no folder: they end with the last descriptor of the socket.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>

namespace catchment::shm {

/// An abstract name as an address: a zero byte, then the name, cut to what an address holds.
class AbstractName {
 public:
  explicit AbstractName(const std::string& name) {
    address_.sun_family = AF_UNIX;
    const std::size_t copied = name.copy(address_.sun_path + 1, sizeof address_.sun_path - 1);
    bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + copied);
  }

  [[nodiscard]] const sockaddr* address() const {
    return reinterpret_cast<const sockaddr*>(&address_);
  }
  [[nodiscard]] socklen_t bytes() const { return bytes_; }

 private:
  sockaddr_un address_{};
  socklen_t bytes_ = 0;
};

}  // namespace catchment::shm
