#include "socket_file.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace catchment::server {

namespace {

bool somebody_listens(const sockaddr_un& address) {
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool there =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  return there;
}

}  // namespace

std::optional<std::string> make_room_for_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return "longer than " + std::to_string(sizeof address.sun_path - 1) +
           " bytes, as socket paths may be";
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  struct stat present{};
  if (::lstat(path.c_str(), &present) != 0) {
    return {};
  }
  if (!S_ISSOCK(present.st_mode) || somebody_listens(address)) {
    return "exists and is in use or not a socket";
  }
  ::unlink(path.c_str());
  return {};
}

}  // namespace catchment::server
