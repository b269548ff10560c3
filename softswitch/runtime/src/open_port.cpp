#include "open_port.hpp"

#include "cable_port.hpp"
#include "datagram_port.hpp"
#include "ethernet_port.hpp"
#include "shm_port.hpp"

namespace catchment::softswitch {

Result<std::unique_ptr<Port>> open_port(const PortSpec& spec, const PortContext& context) {
  switch (spec.kind) {
    case PortKind::ethernet:
      return EthernetPort::open(spec.target, context);
    case PortKind::shared_memory:
      return ShmPort::open(spec.target, context);
    case PortKind::cable:
      return CablePort::open(spec.target, context);
    case PortKind::datagrams:
      return DatagramPort::open(spec.target, context);
  }
  return Status(StatusCode::invalid_argument, spec.text() + ": no such kind of port");
}

}  // namespace catchment::softswitch
