// A transport for Python: one Verilated NIC, and what goes through its queues.
#define TRANSPORT_TOP
#include "rtl/harness/top.hpp"
#include "transport_network.hpp"
#include "transport_nic.hpp"

extern "C" {

Nic* nic_new(std::uint32_t vector_bytes, std::uint32_t seed) {
  return new TopNic<Top>(vector_bytes, seed);
}

void network_run(const Scenario* scenario, const std::uint32_t* settings, const std::uint16_t* gens,
                 TransportNetwork::Maker root, NetworkOutcome* outcome) {
  *outcome = TransportNetwork(*scenario, settings, gens, nic_new, root).run();
}

void nic_delete(Nic* nic) { delete nic; }

void nic_settings(Nic* nic, const std::uint32_t* words) { nic->settings(words); }

void nic_reset(Nic* nic, std::uint32_t clocks) {
  nic->reset(true);
  for (std::uint32_t i = 0; i < clocks; ++i) nic->clock();
  nic->reset(false);
}

void nic_gaps(Nic* nic, const PortGaps* gaps) { nic->gaps = *gaps; }

void nic_run(Nic* nic, std::uint32_t clocks) {
  for (std::uint32_t i = 0; i < clocks; ++i) nic->clock();
}

void nic_push(Nic* nic, const std::uint8_t* data, std::uint32_t bytes, std::uint64_t meta) {
  nic->to_send.push_back({{data, data + bytes}, meta});
}

std::uint64_t nic_unsent(Nic* nic) { return nic->to_send.size(); }

void nic_frame(Nic* nic, const std::uint8_t* data, std::uint32_t bytes, std::uint32_t damaged) {
  nic->from_net.push_back({{data, data + bytes}, damaged != 0});
}

// Bytes of the next frame, 0 when there is none.
std::uint32_t nic_take_frame(Nic* nic, std::uint8_t* data, std::uint64_t* clock) {
  if (nic->to_net.empty()) return 0;
  const Frame& frame = nic->to_net.front();
  const auto bytes = static_cast<std::uint32_t>(frame.bytes.size());
  std::memcpy(data, frame.bytes.data(), bytes);
  *clock = frame.clock;
  nic->to_net.pop_front();
  return bytes;
}

std::uint32_t nic_take_vector(Nic* nic, std::uint8_t* data, std::uint64_t* meta,
                              std::uint64_t* clock) {
  if (nic->received.empty()) return 0;
  const Vector& vector = nic->received.front();
  const auto bytes = static_cast<std::uint32_t>(vector.data.size());
  std::memcpy(data, vector.data.data(), bytes);
  *meta = vector.meta;
  *clock = vector.clock;
  nic->received.pop_front();
  return bytes;
}

std::uint64_t nic_stat(Nic* nic, std::uint32_t index) { return nic->stat(index); }

std::uint64_t nic_now(Nic* nic) { return nic->now; }

std::uint64_t nic_broken_laws(Nic* nic) { return nic->broken_laws; }

void nic_status(Nic* nic, std::uint32_t* words) {
  const auto status = nic->status();
  std::memcpy(words, status.data(), 4 * status.size());
}

}  // extern "C"
