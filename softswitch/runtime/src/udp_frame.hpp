// Finds UDP in an Ethernet frame, and changes its headers when its length changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "catchment/common/big_endian.hpp"

namespace catchment::softswitch {

struct UdpFrame {
  std::size_t network = 0;    // offset of the IP header
  std::size_t transport = 0;  // of the UDP header
  std::size_t payload = 0;    // of what UDP carries
  bool v6 = false;

  /// Finds UDP in a frame of `length` bytes, of which `head` are at hand: Ethernet, at most two
  /// VLAN tags, IPv4 or IPv6 without extension headers, UDP; no fragment, and all lengths are those
  /// of the frame.
  static std::optional<UdpFrame> find(std::span<const std::uint8_t> head, std::size_t length);

  /// Sum of the pseudo header for so many bytes of UDP, its header among them.
  [[nodiscard]] std::uint64_t pseudo_sum(const std::uint8_t* frame, std::size_t udp_bytes) const;
  /// Writes lengths for so many bytes of payload, and the IPv4 checksum.
  void set_lengths(std::uint8_t* frame, std::size_t payload_bytes) const;
  [[nodiscard]] bool ip_checksum_right(const std::uint8_t* frame) const;
};

/// Offsets in an IPv4 header.
inline constexpr std::size_t kIpLength = 2, kIpId = 4, kIpFragment = 6, kIpTtl = 8,
                             kIpChecksum = 10, kIpAddresses = 12;
inline constexpr std::uint16_t kDontFragment = 0x4000;
/// Offsets in a UDP header.
inline constexpr std::size_t kUdpLength = 4, kUdpChecksum = 6, kUdpBytes = 8;

}  // namespace catchment::softswitch
