// TLS handshakes that fail: each is counted, and a line of the log says why.
#pragma once

#include <cstdint>
#include <string>

#include "connections.hpp"
#include "log.hpp"

namespace catchment::server {

// Only gRPC's log tells of a handshake that fails, and it does not say whose: while this exists,
// that log is read here. There is one at a time; other errors of gRPC go to `log` as they are.
class HandshakeFailures {
 public:
  // Both must outlive it.
  HandshakeFailures(const Log& log, const Connections& connections);
  ~HandshakeFailures();
  HandshakeFailures(const HandshakeFailures&) = delete;
  HandshakeFailures& operator=(const HandshakeFailures&) = delete;

  static std::uint64_t count();
};

}  // namespace catchment::server
