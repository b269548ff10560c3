// Splits super-packets of a packet socket into memory of its own.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "port.hpp"
#include "super_packet.hpp"

namespace catchment::softswitch {

class SegmentRoom {
 public:
  /// Segments are frames of up to `longest` bytes, with `before` bytes to spare in front of each.
  SegmentRoom(int socket, std::size_t longest, std::size_t before);

  /// The frames of the last batch are not needed any more.
  void clear() { used_ = 0; }

  /// The segments' frames; `whole`: the packet. The list is good until the next call, the frames
  /// until clear(). Up to kBatch frames and one packet more between two clear().
  std::span<const std::span<std::uint8_t>> split(const SuperPacket& packet,
                                                 std::span<const std::uint8_t> whole);
  /// The same for a packet that the kernel put into the socket's queue, beside the ring. Empty: it
  /// is not there.
  std::span<const std::span<std::uint8_t>> receive(const SuperPacket& packet, std::size_t length,
                                                   std::span<const std::uint8_t> head);
  /// Throws the first packet of the queue away.
  void discard() const;

 private:
  static constexpr std::size_t kFrames = kBatch + SuperPacket::kMostSegments;

  [[nodiscard]] std::uint8_t* frame(std::size_t segment) const {
    return memory_.get() + (used_ + segment) * stride_ + before_;
  }
  std::span<const std::span<std::uint8_t>> finish(const SuperPacket& packet);

  int socket_;
  std::size_t before_;
  std::size_t stride_;
  std::unique_ptr<std::uint8_t[]> memory_;  // touched as it is used
  std::size_t used_ = 0;                    // frames
  std::vector<std::span<std::uint8_t>> frames_;
  std::vector<iovec> parts_;
};

}  // namespace catchment::softswitch
