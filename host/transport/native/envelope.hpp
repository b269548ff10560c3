// Ethernet, IPv4 and UDP around a frame, for ports without a kernel that would write them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "udp_address.hpp"
#include "wire.hpp"

namespace catchment::host {

inline constexpr std::size_t kEnvelopeBytes = wire::kHeaderOffset;
inline constexpr std::size_t kAddressBytes = 12;  // of Ethernet, before all else

class Envelope {
 public:
  // Throws std::system_error for what is not an IPv4 address.
  Envelope(const UdpAddress& local, const UdpAddress& peer);

  // Writes kEnvelopeBytes for a payload of `bytes`.
  void write(std::uint8_t* frame, std::size_t bytes) const;
  // The payload of a frame from the peer to us, or nothing if it is not that.
  std::optional<std::span<const std::uint8_t>> open(std::span<const std::uint8_t> frame);

 private:
  // What is looked at of a frame: all behind its addresses.
  using Looked = std::array<std::uint8_t, kEnvelopeBytes - kAddressBytes>;
  bool is_ours(const Looked& looked) const;

  std::array<std::uint8_t, kEnvelopeBytes> template_{};
  std::uint64_t sum_ = 0;       // of the template's IPv4 header
  std::optional<Looked> seen_;  // of the last frame that was ours: most are like it
};

}  // namespace catchment::host
