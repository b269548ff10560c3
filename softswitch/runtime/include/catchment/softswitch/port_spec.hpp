// What a switch port is bound to, as it is written on a command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "catchment/softswitch/status.hpp"

namespace catchment::softswitch {

enum class PortKind : std::uint8_t { ethernet, shared_memory, cable, datagrams };

struct PortSpec {
  PortKind kind = PortKind::ethernet;
  std::string target;  // the interface, the path, or the addresses

  /// Reads `IFACE` or `eth:IFACE` (a network interface), `shm:PATH` (memory shared with a process
  /// of this machine), `cable:PATH` (to another switch's shm:PATH) or `udp:LOCAL,PEER` (datagrams
  /// of this host).
  static Result<PortSpec> parse(std::string_view text);
  /// The interface, shm:PATH, cable:PATH or udp:LOCAL,PEER.
  [[nodiscard]] std::string text() const;
};

}  // namespace catchment::softswitch
