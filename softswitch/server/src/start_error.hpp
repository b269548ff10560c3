// What keeps the switch from starting.
#pragma once

#include <stdexcept>

namespace catchment::server {

// In words for the operator.
class StartError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace catchment::server
