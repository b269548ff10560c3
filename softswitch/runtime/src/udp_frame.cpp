#include "udp_frame.hpp"

#include <linux/if_ether.h>
#include <netinet/in.h>

#include <cstring>

#include "catchment/common/internet_checksum.hpp"

namespace catchment::softswitch {

namespace {

constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::size_t kVlanBytes = 4;
constexpr std::uint16_t kFragmentBits = 0x3FFF;  // "more" and the offset
constexpr std::size_t kIpProtocol = 9;
constexpr std::size_t kIpv6Length = 4, kIpv6Next = 6, kIpv6Addresses = 8;

}  // namespace

std::optional<UdpFrame> UdpFrame::find(std::span<const std::uint8_t> head, std::size_t length) {
  UdpFrame out;
  std::size_t type_at = 2UL * ETH_ALEN;
  if (head.size() < ETH_HLEN) {
    return std::nullopt;
  }
  std::uint16_t type = load16(&head[type_at]);
  for (int tags = 0; tags < 2 && (type == ETH_P_8021Q || type == ETH_P_8021AD); ++tags) {
    type_at += kVlanBytes;
    if (head.size() < type_at + 2) {
      return std::nullopt;
    }
    type = load16(&head[type_at]);
  }
  out.network = type_at + 2;
  if (head.size() < out.network + kIpv4Bytes) {
    return std::nullopt;
  }
  const std::uint8_t* ip = &head[out.network];
  const std::size_t ip_bytes = length - out.network;
  if (type == ETH_P_IP) {
    const std::size_t header = (ip[0] & 0x0FU) * 4UL;
    if (ip[0] >> 4 != 4 || header < kIpv4Bytes || ip[kIpProtocol] != IPPROTO_UDP ||
        (load16(ip + kIpFragment) & kFragmentBits) != 0 || load16(ip + kIpLength) != ip_bytes) {
      return std::nullopt;
    }
    out.transport = out.network + header;
  } else if (type == ETH_P_IPV6) {
    out.v6 = true;
    out.transport = out.network + kIpv6Bytes;
    if (ip[0] >> 4 != 6 || ip[kIpv6Next] != IPPROTO_UDP ||
        load16(ip + kIpv6Length) + kIpv6Bytes != ip_bytes) {
      return std::nullopt;
    }
  } else {
    return std::nullopt;
  }
  out.payload = out.transport + kUdpBytes;
  if (head.size() < out.payload || length < out.payload ||
      load16(&head[out.transport + kUdpLength]) != length - out.transport) {
    return std::nullopt;
  }
  return out;
}

std::uint64_t UdpFrame::pseudo_sum(const std::uint8_t* frame, std::size_t udp_bytes) const {
  std::uint8_t rest[4] = {0, IPPROTO_UDP};
  store16(rest + 2, udp_bytes);
  const std::uint8_t* ip = frame + network;
  return v6 ? ones_sum(ip + kIpv6Addresses, 32, ones_sum(rest, sizeof rest))
            : ones_sum(ip + kIpAddresses, 8, ones_sum(rest, sizeof rest));
}

void UdpFrame::set_lengths(std::uint8_t* frame, std::size_t payload_bytes) const {
  std::uint8_t* ip = frame + network;
  const std::size_t udp_bytes = kUdpBytes + payload_bytes;
  store16(frame + transport + kUdpLength, udp_bytes);
  if (v6) {
    store16(ip + kIpv6Length, udp_bytes);
    return;
  }
  store16(ip + kIpLength, transport - network + udp_bytes);
  store16(ip + kIpChecksum, 0);
  const std::uint16_t checksum =
      static_cast<std::uint16_t>(~fold(ones_sum(ip, transport - network)));
  std::memcpy(ip + kIpChecksum, &checksum, sizeof checksum);
}

bool UdpFrame::ip_checksum_right(const std::uint8_t* frame) const {
  return v6 || fold(ones_sum(frame + network, transport - network)) == 0xFFFF;
}

}  // namespace catchment::softswitch
