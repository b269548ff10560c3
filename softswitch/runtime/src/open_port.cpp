#include "open_port.hpp"

#include "ethernet_port.hpp"

namespace catchment::softswitch {

Result<std::unique_ptr<Port>> open_port(const PortSpec& spec, const PortContext& context) {
  switch (spec.kind) {
    case PortKind::ethernet:
      return EthernetPort::open(spec.target, context);
    case PortKind::shared_memory:
      break;
  }
  return Status(StatusCode::unimplemented, spec.text() + ": no shared-memory ports here");
}

}  // namespace catchment::softswitch
