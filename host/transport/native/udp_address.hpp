// An IPv4 address and a UDP port.
#pragma once

#include <cstdint>
#include <string>

namespace catchment::host {

struct UdpAddress {
  std::string host;
  std::uint16_t port = 0;
};

}  // namespace catchment::host
