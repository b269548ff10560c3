// Opens a port of any kind.
#pragma once

#include <memory>

#include "catchment/softswitch/port_spec.hpp"
#include "port.hpp"

namespace catchment::softswitch {

Result<std::unique_ptr<Port>> open_port(const PortSpec& spec, const PortContext& context);

}  // namespace catchment::softswitch
