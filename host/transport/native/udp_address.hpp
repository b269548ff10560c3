// An IPv4 address and a UDP port.
#pragma once

#include <arpa/inet.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

namespace catchment::host {

struct UdpAddress {
  std::string host;
  std::uint16_t port = 0;
};

// As the kernel takes it.  Throws std::system_error: the host is not in dotted notation.
inline sockaddr_in resolved(const UdpAddress& address) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(address.port);
  if (inet_pton(AF_INET, address.host.c_str(), &result.sin_addr) != 1) {
    throw std::system_error(EINVAL, std::generic_category(), address.host);
  }
  return result;
}

}  // namespace catchment::host
