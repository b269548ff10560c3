// A switch: the compiled P4 program between its ports, a pipeline's latency, an egress queue per
// port.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "catchment/softswitch/packets.hpp"
#include "node.hpp"
#include "protocol_line.hpp"

namespace catchment::cosim {

struct SwitchTiming {
  Picos pipeline = 0;           // from a frame's last bit to its place in the egress queue
  std::size_t queue_bytes = 0;  // of a port; what does not fit is dropped
};

class SwitchNode final : public Node {
 public:
  SwitchNode(softswitch::Packets& packets, SwitchTiming timing)
      : packets_(packets), timing_(timing) {}

  void attach(std::uint32_t port, ProtocolLine& line) {
    line.limit_queue(timing_.queue_bytes);
    ports_[port] = &line;
  }
  void on_frame(std::uint32_t port, Arrival&& arrival) override;

  [[nodiscard]] const SwitchTiming& timing() const { return timing_; }
  // Of the line behind a port.
  [[nodiscard]] const world::LineCounts& counts(std::uint32_t port) const {
    return ports_.at(port)->counts();
  }
  [[nodiscard]] std::uint64_t damaged() const { return damaged_; }

 private:
  void emit(const softswitch::rt::OutFrame& frame, Picos ready);

  softswitch::Packets& packets_;
  SwitchTiming timing_;
  std::map<std::uint32_t, ProtocolLine*> ports_;
  std::vector<softswitch::rt::OutFrame> out_;
  std::uint64_t damaged_ = 0;
};

}  // namespace catchment::cosim
