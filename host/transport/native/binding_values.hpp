// What the Python bindings share: C++ values to and from Python's.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

#include "member.hpp"
#include "request.hpp"
#include "stats.hpp"
#include "stream_config.hpp"
#include "udp_address.hpp"

namespace catchment::host {

inline constexpr double kNanosPerSecond = 1e9;

template <typename Integer>
double seconds(Integer nanos) {
  return static_cast<double>(nanos) / kNanosPerSecond;
}

pybind11::object to_dict(const std::optional<Failure>& failure);
pybind11::dict to_dict(const Stats& stats);

// window: 0 for all slots.
StreamConfig stream(const std::string& name, const pybind11::dict& fields, std::uint32_t window);
// role, streams, window, wid, switch, timeout.
EndpointConfig endpoint_config(const pybind11::dict& fields);
UdpAddress address(const pybind11::handle& pair);
// Seconds; at most three years.
Nanos nanos(const pybind11::handle& seconds);

}  // namespace catchment::host
