#include "envelope.hpp"

#include <net/ethernet.h>
#include <netinet/in.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "catchment/common/big_endian.hpp"
#include "catchment/common/internet_checksum.hpp"

namespace catchment::host {
namespace {

constexpr std::size_t kIpv4 = wire::kEthernetBytes;
constexpr std::size_t kUdp = kIpv4 + wire::kIpv4Bytes;
constexpr std::uint8_t kVersionAndLength = 0x45;  // IPv4 without options
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kFragment = 0x3fff;  // more fragments, or an offset
constexpr std::uint8_t kTimeToLive = 64;
// Locally administered, then the IPv4 address.
constexpr std::array<std::uint8_t, 2> kMacPrefix = {0x02, 0x00};

void put_address(const UdpAddress& address, std::uint8_t* at) {
  const in_addr host = resolved(address).sin_addr;
  std::memcpy(at, &host, sizeof host);
}

}  // namespace

Envelope::Envelope(const UdpAddress& local, const UdpAddress& peer) {
  std::uint8_t* const ethernet = template_.data();
  std::uint8_t* const ip = ethernet + kIpv4;
  std::uint8_t* const udp = ethernet + kUdp;
  ip[0] = kVersionAndLength;
  store16(ip + 6, kDontFragment);
  ip[8] = kTimeToLive;
  ip[9] = IPPROTO_UDP;
  put_address(local, ip + 12);
  put_address(peer, ip + 16);
  store16(udp, local.port);
  store16(udp + 2, peer.port);
  store16(ethernet + 12, ETHERTYPE_IP);
  // Broadcast until the switch has shown its own address.
  std::fill_n(ethernet, ETH_ALEN, std::uint8_t{0xff});
  std::copy(kMacPrefix.begin(), kMacPrefix.end(), ethernet + ETH_ALEN);
  std::copy_n(ip + 12, 4, ethernet + ETH_ALEN + kMacPrefix.size());
  sum_ = ones_sum(ip, wire::kIpv4Bytes);
}

void Envelope::write(std::uint8_t* frame, std::size_t bytes) const {
  std::memcpy(frame, template_.data(), template_.size());
  const std::size_t datagram = wire::kUdpBytes + bytes;
  const std::size_t packet = wire::kIpv4Bytes + datagram;
  store16(frame + kIpv4 + 2, packet);
  // Reading back what was just stored would wait for every store before it.
  std::array<std::uint8_t, 2> length{};
  store16(length.data(), packet);
  const auto checksum = static_cast<std::uint16_t>(~fold(ones_sum(length.data(), 2, sum_)));
  std::memcpy(frame + kIpv4 + 10, &checksum, sizeof checksum);
  store16(frame + kUdp + 4, datagram);
}

bool Envelope::is_ours(const Looked& looked) const {
  const std::uint8_t* const ip = looked.data() + kIpv4 - kAddressBytes;
  const std::uint8_t* const udp = looked.data() + kUdp - kAddressBytes;
  const std::uint8_t* const own = template_.data();
  const std::size_t datagram = load16(udp + 4);
  return load16(looked.data()) == ETHERTYPE_IP && ip[0] == kVersionAndLength &&
         ip[9] == IPPROTO_UDP && (load16(ip + 6) & kFragment) == 0 &&
         std::memcmp(ip + 12, own + kIpv4 + 16, 4) == 0 &&  // from the switch
         std::memcmp(ip + 16, own + kIpv4 + 12, 4) == 0 &&  // to us
         std::memcmp(udp, own + kUdp + 2, 2) == 0 && std::memcmp(udp + 2, own + kUdp, 2) == 0 &&
         fold(ones_sum(ip, wire::kIpv4Bytes)) == 0xffff && datagram >= wire::kUdpBytes &&
         load16(ip + 2) == wire::kIpv4Bytes + datagram;
}

std::optional<std::span<const std::uint8_t>> Envelope::open(std::span<const std::uint8_t> frame) {
  if (frame.size() < kEnvelopeBytes) return std::nullopt;
  Looked looked;
  std::memcpy(looked.data(), frame.data() + kAddressBytes, looked.size());
  // The frame may lie in memory that others write to: what is checked is not read again.
  std::atomic_signal_fence(std::memory_order_acq_rel);
  if (looked != seen_) {
    if (!is_ours(looked)) return std::nullopt;
    seen_ = looked;
  }
  const std::size_t datagram = load16(looked.data() + kUdp - kAddressBytes + 4);
  if (kUdp + datagram > frame.size()) return std::nullopt;
  std::memcpy(template_.data(), frame.data() + ETH_ALEN, ETH_ALEN);
  return frame.subspan(kEnvelopeBytes, datagram - wire::kUdpBytes);
}

}  // namespace catchment::host
