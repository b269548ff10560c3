// The packet thread's door into a Dataplane: batches in, frames out. For PortLoop, benchmarks and
// other packet sources.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "catchment/softswitch/dataplane.hpp"
#include "catchment/softswitch/rt/engine.hpp"

namespace catchment::softswitch {

/// Implemented by Dataplane. One thread at a time.
class Packets {
 public:
  virtual ~Packets() = default;

  /// Runs the frames through the program under the lock. What came out is in output(); the caller
  /// sends it, releases each buffer and forgets the list. Frames to the CPU port have already gone
  /// to the packet-in hook, if there is one.
  virtual void process(std::span<const rt::InputFrame> frames) = 0;
  virtual rt::Output& output() = 0;
  /// Counts frames as sent, or dropped, at a port.
  virtual void count_sent(std::uint32_t port, std::uint64_t packets, std::uint64_t bytes) = 0;
  virtual void count_drops(std::uint32_t port, DropCause cause, std::uint64_t packets) = 0;
};

}  // namespace catchment::softswitch
