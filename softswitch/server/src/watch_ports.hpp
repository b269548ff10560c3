// The ports that members of groups and action sets may watch.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "p4/v1/p4runtime.pb.h"

namespace catchment::server {

class WatchPorts {
 public:
  // `ports`: those of the switch; empty: it was started without any, and any number may be watched.
  explicit WatchPorts(std::set<std::uint32_t> ports) : ports_(std::move(ports)) {}

  // Throws RpcError(INVALID_ARGUMENT) when the update watches a port that the switch does not have.
  void check(const p4::v1::Update& update) const;

 private:
  void check(const std::string& port, const std::string& owner) const;

  std::set<std::uint32_t> ports_;
};

}  // namespace catchment::server
