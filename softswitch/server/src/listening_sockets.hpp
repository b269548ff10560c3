// TCP sockets that wait for connections.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace catchment::server {

struct ListeningSockets {
  std::vector<int> sockets;  // one for each address that the name has
  std::uint16_t port = 0;
};

// Listens at HOST:PORT or [HOST]:PORT; port 0 takes a free one. Throws StartError.
ListeningSockets listen_at(const std::string& address);

}  // namespace catchment::server
