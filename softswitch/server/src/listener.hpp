// Where the P4Runtime server listens, with what credentials, and what it takes from anybody.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "connections.hpp"
#include "options.hpp"

namespace catchment::server {

struct Listening {
  std::unique_ptr<grpc::Server> server;
  std::string address;  // with the port that was chosen when it was 0
};

// What each client may send before it is a whole message.
ReceiveLimits receive_limits(const Options& options);

// Connections over TCP are accepted by `connections`, which must outlive the server or be stopped
// before it ends. Throws StartError.
Listening listen(const Options& options, grpc::Service& service, Connections& connections);

}  // namespace catchment::server
