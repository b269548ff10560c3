// Notices that nothing moves, and says why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "receiver.hpp"
#include "request.hpp"
#include "transmitter.hpp"

namespace catchment::host {

// Work that has not moved for a while.
struct Stall {
  std::string stream;
  Nanos since = 0;
  Seq seq = 0;
  std::string cause;
};

// What an endpoint has received from the network.
struct Contact {
  std::uint64_t frames = 0;  // valid ones, ever
  Nanos last_frame = 0;
  int last_error = 0;  // errno
};

class Watchdog {
 public:
  Watchdog(Nanos timeout, std::string peer) : timeout_(timeout), peer_(std::move(peer)) {}

  // The time at which to look again.
  Nanos deadline() const { return next_; }

  // Streams that stand still for a second or more.
  std::vector<Stall> stalls(const Transmitter* out, const Receiver* in, const Contact& contact,
                            Nanos now);

  // The failure, once nothing has moved for the whole timeout with work outstanding.
  std::optional<Failure> expired(const Transmitter* out, const Receiver* in, const Contact& contact,
                                 Nanos now) const;

 private:
  Nanos timeout_;
  std::string peer_;
  Nanos next_ = 0;
};

}  // namespace catchment::host
