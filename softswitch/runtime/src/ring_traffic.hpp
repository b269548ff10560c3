// Frames between a port and the rings that it shares with a process of this machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "catchment/shm/channel.hpp"
#include "port.hpp"

namespace catchment::softswitch {

/// Who fills the ring: only a peer that was let into the data plane marks frames.
enum class Marks : std::uint8_t { none, of_insider };

/// What waits in the ring, up to kBatch frames, after what was taken before has been given back.
Received take(shm::Channel& channel, const PortContext& context, Marks marks,
              std::vector<rt::InputFrame>& frames);

/// Queues frames from the front of a list, up to kBatch, until the ring is full. The peer sees them
/// when they are published.
Sent put(shm::Channel& channel, std::span<const rt::OutFrame> frames);

/// Why the channel has come to its end, for the operator: `who` is at its other side, left, or
/// corrupted its ring, and is told so. Empty: both are here.
std::string end_of(shm::Channel& channel, const std::string& who);

}  // namespace catchment::softswitch
