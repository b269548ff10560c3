#include "line.hpp"

#include <algorithm>
#include <utility>

#include "wire.hpp"

namespace catchment::cosim {

namespace {

constexpr std::size_t kHeader = wire::kEthernetBytes + wire::kIpv4Bytes + wire::kUdpBytes;
constexpr std::size_t kUdpPortAt = wire::kEthernetBytes + wire::kIpv4Bytes + 2;
constexpr std::uint64_t kPrime = 0x100000001B3U;

// wire::PacketType of a frame, 0 if it is none of ours. A receiver's UDP port may be any, so either
// port tells.
std::uint8_t type_of(const Bytes& bytes) {
  if (bytes.size() < kHeader + wire::kHeaderBytes) return 0;
  const auto port = [&](std::size_t at) { return bytes[at] << 8 | bytes[at + 1]; };
  if (port(kUdpPortAt) != wire::kUdpPort && port(kUdpPortAt - 2) != wire::kUdpPort) return 0;
  return wire::decode(bytes.data() + kHeader).type;
}

bool resent(const Bytes& bytes, std::uint8_t type) {
  const bool data = type == static_cast<std::uint8_t>(wire::PacketType::kPA) ||
                    type == static_cast<std::uint8_t>(wire::PacketType::kPARAM);
  return data && wire::has(wire::decode(bytes.data() + kHeader).flags, wire::Flag::kRETX);
}

}  // namespace

void Line::send(std::shared_ptr<const Bytes> bytes, bool damaged, Picos ready, Picos complete) {
  const Picos on_wire = static_cast<Picos>(wire_bytes(bytes->size())) * timing_.byte;
  const Picos gap = static_cast<Picos>(kGap) * timing_.byte;
  // A line that is faster than what feeds it still ends with the last byte.
  const Picos start = std::max({ready, free_at_, complete - (on_wire - gap)});
  free_at_ = start + on_wire;
  const std::uint8_t type = type_of(*bytes);
  note(*bytes, type, start);
  const bool lost = chosen(type) || hit(faults.loss);
  if (capture != nullptr) capture->push_back({number_, start, lost, bytes});
  if (lost) {
    ++counts_.lost;
    return;
  }
  Arrival arrival{std::move(bytes), damaged, start + timing_.latency, 0};
  if (hit(faults.damage)) {
    arrival.damaged = true;
    ++counts_.damaged;
  }
  const int copies = hit(faults.duplicate) ? 2 : 1;
  counts_.duplicated += static_cast<std::uint64_t>(copies - 1);
  for (int copy = 0; copy < copies; ++copy) {
    Arrival here = arrival;
    if (hit(faults.reorder)) {
      here.first += static_cast<Picos>(random_() % static_cast<std::uint64_t>(faults.delay + 1));
      ++counts_.reordered;
    }
    here.last = here.first + on_wire - gap;
    deliver(std::move(here));
  }
}

void Line::lose(std::optional<std::uint8_t> type, std::uint64_t skip, std::uint64_t count) {
  losses_.push_back({type, skip, count});
}

void Line::note(const Bytes& bytes, std::uint8_t type, Picos start) {
  ++counts_.frames[type];
  counts_.bytes[type] += bytes.size();
  if (resent(bytes, type)) ++counts_.resent[type];
  std::uint64_t sum = digest_ ^ static_cast<std::uint64_t>(start);
  for (const std::uint8_t byte : bytes) sum = (sum ^ byte) * kPrime;
  digest_ = sum;
}

bool Line::hit(double probability) {
  if (probability <= 0) return false;
  return static_cast<double>(random_() >> 11U) * 0x1p-53 < probability;
}

bool Line::chosen(std::uint8_t type) {
  const auto loss = std::find_if(losses_.begin(), losses_.end(),
                                 [&](const Loss& one) { return !one.type || *one.type == type; });
  if (loss == losses_.end()) return false;
  if (loss->skip != 0) {
    --loss->skip;
    return false;
  }
  if (--loss->count == 0) losses_.erase(loss);
  return true;
}

}  // namespace catchment::cosim
