// PORT:SPEC, as --fault and the admin socket take it.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include "catchment/softswitch/faults.hpp"

namespace catchment::server {

struct FaultOption {
  std::uint32_t port = 0;
  softswitch::PortFaults faults;
};

inline softswitch::Result<FaultOption> parse_fault(const std::string& text) {
  FaultOption option;
  const auto colon = text.find(':');
  const char* end = text.data() + (colon == std::string::npos ? 0 : colon);
  const auto [rest, error] = std::from_chars(text.data(), end, option.port);
  if (error != std::errc() || rest != end) {
    return softswitch::Status(
        softswitch::StatusCode::invalid_argument,
        std::string("'").append(text) + "' is not PORT:SPEC, such as 1:loss=0.01,seed=7");
  }
  auto faults = softswitch::PortFaults::parse(std::string_view(text).substr(colon + 1));
  if (!faults.ok()) {
    return faults.status();
  }
  option.faults = faults.value();
  return option;
}

}  // namespace catchment::server
