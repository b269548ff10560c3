#include "catchment/softswitch/port_spec.hpp"

#include <net/if.h>

namespace catchment::softswitch {

namespace {

constexpr std::string_view kEthernet = "eth:";
constexpr std::string_view kSharedMemory = "shm:";
constexpr std::string_view kCable = "cable:";
constexpr std::string_view kDatagrams = "udp:";

}  // namespace

Result<PortSpec> PortSpec::parse(std::string_view text) {
  if (text.starts_with(kSharedMemory)) {
    const std::string_view path = text.substr(kSharedMemory.size());
    if (path.empty()) {
      return Status(StatusCode::invalid_argument, "'shm:' needs a path: shm:PATH");
    }
    return PortSpec{PortKind::shared_memory, std::string(path)};
  }
  if (text.starts_with(kCable)) {
    const std::string_view path = text.substr(kCable.size());
    if (path.empty()) {
      return Status(StatusCode::invalid_argument, "'cable:' needs a path: cable:PATH");
    }
    return PortSpec{PortKind::cable, std::string(path)};
  }
  if (text.starts_with(kDatagrams)) {
    return PortSpec{PortKind::datagrams, std::string(text.substr(kDatagrams.size()))};
  }
  std::string_view interface = text;
  if (interface.starts_with(kEthernet)) {
    interface.remove_prefix(kEthernet.size());
  }
  if (interface.empty() || interface.size() >= IFNAMSIZ ||
      interface.find('/') != std::string_view::npos) {
    return Status(
        StatusCode::invalid_argument,
        std::string("'").append(text) + "' is not a network interface (IFACE or eth:IFACE, 1 to " +
            std::to_string(IFNAMSIZ - 1) + " characters), shm:PATH, cable:PATH nor udp:LOCAL,PEER");
  }
  return PortSpec{PortKind::ethernet, std::string(interface)};
}

std::string PortSpec::text() const {
  switch (kind) {
    case PortKind::shared_memory:
      return std::string(kSharedMemory) + target;
    case PortKind::cable:
      return std::string(kCable) + target;
    case PortKind::datagrams:
      return std::string(kDatagrams) + target;
    case PortKind::ethernet:
      break;
  }
  return target;
}

}  // namespace catchment::softswitch
