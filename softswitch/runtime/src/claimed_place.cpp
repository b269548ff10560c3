#include "claimed_place.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "catchment/shm/abstract_name.hpp"

namespace catchment::softswitch {

std::optional<ClaimedPlace> ClaimedPlace::take(std::size_t number) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const shm::AbstractName name("catchment-state-" + std::to_string(geteuid()) + "-" +
                               std::to_string(number));
  if (!socket.valid() || bind(socket.get(), name.address(), name.bytes()) != 0) {
    return std::nullopt;
  }
  return ClaimedPlace(std::move(socket));
}

}  // namespace catchment::softswitch
