#include "socket_file.hpp"

#include <sys/un.h>

#include "catchment/common/leftover_socket.hpp"

namespace catchment::server {

std::optional<std::string> make_room_for_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return "longer than " + std::to_string(sizeof address.sun_path - 1) +
           " bytes, as socket paths may be";
  }
  path.copy(address.sun_path, path.size());
  return remove_leftover_socket(address);
}

}  // namespace catchment::server
