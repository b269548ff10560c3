// What a kernel leaves to a device, done here: unfinished checksums, and UDP datagrams of one size
// that come as one long packet (generic segmentation offload, UDP_SEGMENT).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "udp_frame.hpp"

namespace catchment::softswitch {

/// The header in front of each frame of a packet socket with PACKET_VNET_HDR, in the machine's byte
/// order (struct virtio_net_hdr, whose header file C++ cannot read).
struct FrameNote {
  std::uint8_t flags = 0;
  std::uint8_t segmentation = 0;
  std::uint16_t header_bytes = 0;
  std::uint16_t segment_bytes = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;

  static constexpr std::uint8_t kNeedsChecksum = 1;
  static constexpr std::uint8_t kWhole = 0, kUdpSegments = 5;
};
static_assert(sizeof(FrameNote) == 10);

/// Finishes the checksum that the note tells of; false: it tells of none, or of none in the frame.
bool finish_checksum(std::span<std::uint8_t> frame, const FrameNote& note);

class SuperPacket {
 public:
  /// The most that a kernel makes, now or ever so far.
  static constexpr std::size_t kMostSegments = 128;

  /// Reads a packet of `length` bytes that begins with `head`, which has to stay in place. Nothing:
  /// the packet cannot be split, or would give frames longer than `longest`.
  static std::optional<SuperPacket> read(std::span<const std::uint8_t> head, std::size_t length,
                                         const FrameNote& note, std::size_t longest);

  [[nodiscard]] std::size_t segments() const { return segments_; }
  [[nodiscard]] std::size_t header_bytes() const { return udp_.payload; }
  /// Payload of a segment.
  [[nodiscard]] std::size_t bytes_of(std::size_t segment) const {
    return segment + 1 < segments_ ? segment_bytes_ : payload_bytes_ - segment * segment_bytes_;
  }
  /// Makes the frame of a segment, as the kernel would have; its payload is in place, behind
  /// header_bytes(). Returns its length.
  std::size_t finish(std::size_t segment, std::uint8_t* frame) const;

 private:
  std::span<const std::uint8_t> head_;
  UdpFrame udp_;
  std::size_t payload_bytes_ = 0;
  std::size_t segment_bytes_ = 0;
  std::size_t segments_ = 0;
  bool checksummed_ = false;
};

}  // namespace catchment::softswitch
