// The packet threads' door into a Dataplane: batches in, frames out. For PortLoop, benchmarks and
// other packet sources.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "catchment/softswitch/dataplane.hpp"
#include "catchment/softswitch/rt/engine.hpp"

namespace catchment::softswitch {

/// What a peer that ran the program itself left to the switch.
struct PassedOn {
  enum class What : std::uint8_t { frame, digest, line, step_limit };
  What what = What::frame;
  std::uint32_t port = 0;  // by which a frame leaves; from which one came that took too many steps
  std::span<const std::uint8_t> bytes;
};

/// Implemented by Dataplane. Any thread; the lock inside makes one batch after the other of them.
class Packets {
 public:
  virtual ~Packets() = default;

  /// Runs the frames through the program under the lock and appends what came out; the caller sends
  /// it and gives each frame back by sent() or dropped(). Frames to the CPU port have already gone
  /// to the packet-in hook, if there is one.
  virtual void process(std::span<const rt::InputFrame> frames, std::vector<rt::OutFrame>& out) = 0;
  /// Takes over what callers left, and appends the frames among it as process() does.
  virtual void take_over(std::span<const PassedOn> passed, std::vector<rt::OutFrame>& out) = 0;
  /// Takes back frames that have left the caller's hands, and counts how many of them, and of their
  /// bytes, were sent by a port.
  virtual void sent(std::uint32_t port, std::uint64_t packets, std::uint64_t bytes,
                    std::span<const rt::OutFrame> frames) = 0;
  /// Takes back frames and counts them as dropped at a port.
  virtual void dropped(std::uint32_t port, DropCause cause,
                       std::span<const rt::OutFrame> frames) = 0;
  /// Counts drops of frames that were taken back already, or never came in.
  virtual void count_drops(std::uint32_t port, DropCause cause, std::uint64_t packets) = 0;
};

}  // namespace catchment::softswitch
