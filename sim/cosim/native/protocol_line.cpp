#include "protocol_line.hpp"

#include <utility>

#include "wire.hpp"

namespace catchment::cosim {

namespace {

constexpr std::size_t kUdpPortAt = wire::kEthernetBytes + wire::kIpv4Bytes + 2;
constexpr std::uint64_t kPrime = 0x100000001B3U;

// wire::PacketType of a frame, 0 if it is none of ours. A receiver's UDP port may be any, so either
// port tells.
std::uint8_t type_of(const Bytes& bytes) {
  if (bytes.size() < wire::kHeaderOffset + wire::kHeaderBytes) return 0;
  const auto port = [&](std::size_t at) { return bytes[at] << 8 | bytes[at + 1]; };
  if (port(kUdpPortAt) != wire::kUdpPort && port(kUdpPortAt - 2) != wire::kUdpPort) return 0;
  return wire::decode(bytes.data() + wire::kHeaderOffset).type;
}

bool resent(const Bytes& bytes, std::uint8_t type) {
  const bool data = type == static_cast<std::uint8_t>(wire::PacketType::kPA) ||
                    type == static_cast<std::uint8_t>(wire::PacketType::kPARAM);
  return data &&
         wire::has(wire::decode(bytes.data() + wire::kHeaderOffset).flags, wire::Flag::kRETX);
}

}  // namespace

bool ProtocolLine::put(std::shared_ptr<const Bytes> bytes, bool damaged, Picos ready,
                       Picos complete) {
  const std::uint8_t type = type_of(*bytes);
  const world::Transit transit =
      carry(bytes, bytes->size(), type, ready, complete,
            [&](const std::shared_ptr<const Bytes>& frame, const world::Copy& copy) {
              const bool cut = damaged && frame == bytes;
              deliver({frame, copy.damaged || cut, copy.first, copy.last});
            });
  if (transit.dropped) return false;
  note(*bytes, type, transit.start);
  if (capture != nullptr) capture->push_back({number(), transit.start, transit.lost, bytes});
  return true;
}

void ProtocolLine::note(const Bytes& bytes, std::uint8_t type, Picos start) {
  ++by_type_.frames[type];
  by_type_.bytes[type] += bytes.size();
  if (resent(bytes, type)) ++by_type_.resent[type];
  std::uint64_t sum = digest_ ^ static_cast<std::uint64_t>(start);
  for (const std::uint8_t byte : bytes) sum = (sum ^ byte) * kPrime;
  digest_ = sum;
}

}  // namespace catchment::cosim
