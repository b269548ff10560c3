// All devices, switches and lines on one clock of 250 MHz.
//
// Devices run one after the other, each for as many clocks as no frame needs from one to the next:
// every line into a device has a latency, and what a device sends goes through a line first. How
// many that are changes nothing but speed; `batch` lowers it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "device_node.hpp"
#include "events.hpp"
#include "member_node.hpp"
#include "protocol_line.hpp"
#include "ring_node.hpp"
#include "switch_node.hpp"

namespace catchment::cosim {

class Machine {
 public:
  Machine(std::uint64_t seed, std::uint64_t batch) : world_(seed), batch_(batch) {}

  DeviceNode& add_device(const rtl::Device& table, void* device, std::size_t fifo_bytes);
  SwitchNode& add_switch(softswitch::Packets& packets, SwitchTiming timing);
  MemberNode& add_member(StackTiming timing);
  RingNode& add_ring_node(const rtl::RingDevice& table, void* device);
  // Links between neighbours, in the order of the nodes and from the last one to the first.
  void close_ring(LineTiming timing);
  // One direction of a cable; the other is a line of its own.
  ProtocolLine& add_line(LineTiming timing);
  void end(ProtocolLine& line, DeviceNode& device);
  void end(ProtocolLine& line, Node& node, std::uint32_t port);

  // A node that answers on a line into a device adds this to the line's latency: a switch its
  // pipeline.
  void allow(Picos lookahead);

  // Tells the owner of the clock that the devices are gone.
  void close() { closed_ = true; }
  void run(std::uint64_t clocks);
  // Until a watch closes, none is open, or `limit` clocks have passed; looks every 128.
  void run_watched(std::uint64_t limit);
  // Until a device's accesses are over.
  void run_accesses(const RegisterPort& registers);

  [[nodiscard]] std::uint64_t clocks() const { return clocks_; }
  [[nodiscard]] Picos now() const { return static_cast<Picos>(clocks_) * kClock; }
  [[nodiscard]] std::uint64_t batch() const { return batch_; }

  // The direction of a link that leaves a node of the ring: to the next one, or to the one before.
  [[nodiscard]] FlitLine& link(std::size_t node, bool to_next) {
    return *links_.at(2 * node + (to_next ? 0 : 1));
  }

  void capture(bool on);
  std::vector<Sighting> sightings() { return std::exchange(sightings_, {}); }

 private:
  [[nodiscard]] std::size_t waiting() const;
  void step(std::uint64_t clocks);

  World world_;
  std::uint64_t batch_;
  std::uint64_t clocks_ = 0;
  std::vector<std::unique_ptr<DeviceNode>> devices_;
  std::vector<std::unique_ptr<SwitchNode>> switches_;
  std::vector<std::unique_ptr<MemberNode>> members_;
  std::vector<std::unique_ptr<ProtocolLine>> lines_;
  std::vector<std::unique_ptr<RingNode>> ring_;
  std::vector<std::unique_ptr<FlitLine>> links_;  // to the next one, to the one before, by node
  bool closed_ = false;
  bool capturing_ = false;
  std::vector<Sighting> sightings_;
};

}  // namespace catchment::cosim
