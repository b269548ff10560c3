// Where the P4Runtime server listens, with what credentials, and what it takes from anybody.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "options.hpp"

namespace catchment::server {

// What keeps the switch from starting, in words for the operator.
class StartError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the server and the address it listens on, with the port that was chosen when it was 0.
// Throws StartError.
std::pair<std::unique_ptr<grpc::Server>, std::string> listen(const Options& options,
                                                             grpc::Service& service);

}  // namespace catchment::server
