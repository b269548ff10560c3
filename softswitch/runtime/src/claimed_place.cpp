#include "claimed_place.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <utility>

namespace catchment::softswitch {

std::optional<ClaimedPlace> ClaimedPlace::take(std::size_t number) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name =
      "catchment-state-" + std::to_string(geteuid()) + "-" + std::to_string(number);
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // behind a zero: in no folder
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!socket.valid() ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    return std::nullopt;
  }
  return ClaimedPlace(std::move(socket));
}

}  // namespace catchment::softswitch
