#include "super_packet.hpp"

#include <cstring>

#include "catchment/common/internet_checksum.hpp"

namespace catchment::softswitch {

namespace {

/// Zero would say that there is none.
void store_checksum(std::uint8_t* at, std::uint64_t sum) {
  auto checksum = static_cast<std::uint16_t>(~fold(sum));
  if (checksum == 0) {
    checksum = 0xFFFF;
  }
  std::memcpy(at, &checksum, sizeof checksum);
}

}  // namespace

bool finish_checksum(std::span<std::uint8_t> frame, const FrameNote& note) {
  const std::size_t start = note.checksum_start;
  if ((note.flags & FrameNote::kNeedsChecksum) == 0 ||
      start + note.checksum_offset + 2UL > frame.size()) {
    return false;
  }
  // The field holds the sum of the pseudo header.
  store_checksum(&frame[start + note.checksum_offset],
                 ones_sum(&frame[start], frame.size() - start));
  return true;
}

std::optional<SuperPacket> SuperPacket::read(std::span<const std::uint8_t> head, std::size_t length,
                                             const FrameNote& note, std::size_t longest) {
  const auto udp = UdpFrame::find(head, length);
  if (note.segmentation != FrameNote::kUdpSegments || !udp || note.segment_bytes == 0 ||
      length == udp->payload) {
    return std::nullopt;
  }
  SuperPacket out;
  out.head_ = head.first(udp->payload);
  out.udp_ = *udp;
  out.payload_bytes_ = length - udp->payload;
  out.segment_bytes_ = note.segment_bytes;
  out.segments_ = (out.payload_bytes_ + out.segment_bytes_ - 1) / out.segment_bytes_;
  out.checksummed_ = (note.flags & FrameNote::kNeedsChecksum) != 0 ||
                     load16(&head[udp->transport + kUdpChecksum]) != 0;
  if (out.segments_ > kMostSegments || udp->payload + out.bytes_of(0) > longest) {
    return std::nullopt;
  }
  return out;
}

std::size_t SuperPacket::finish(std::size_t segment, std::uint8_t* frame) const {
  const std::size_t payload = bytes_of(segment);
  const std::size_t udp_bytes = kUdpBytes + payload;
  std::memcpy(frame, head_.data(), head_.size());
  if (!udp_.v6) {
    std::uint8_t* id = frame + udp_.network + kIpId;
    store16(id, load16(id) + segment);
  }
  udp_.set_lengths(frame, payload);
  std::uint8_t* checksum = frame + udp_.transport + kUdpChecksum;
  store16(checksum, 0);
  if (checksummed_) {
    store_checksum(checksum,
                   ones_sum(frame + udp_.transport, udp_bytes, udp_.pseudo_sum(frame, udp_bytes)));
  }
  return udp_.payload + payload;
}

}  // namespace catchment::softswitch
