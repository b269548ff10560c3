// A switch: the compiled P4 program between its ports, a pipeline's latency, an egress queue per
// port.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "catchment/softswitch/packets.hpp"
#include "line.hpp"
#include "node.hpp"

namespace catchment::cosim {

struct SwitchTiming {
  Picos pipeline = 0;           // from a frame's last bit to its place in the egress queue
  std::size_t queue_bytes = 0;  // of a port; what does not fit is dropped
};

struct PortQueueCounts {
  std::uint64_t dropped = 0;     // the queue was full
  std::uint64_t most_bytes = 0;  // that waited
};

class SwitchNode final : public Node {
 public:
  SwitchNode(softswitch::Packets& packets, SwitchTiming timing)
      : packets_(packets), timing_(timing) {}

  void attach(std::uint32_t port, Line& line) { ports_[port] = {&line, {}}; }
  void on_frame(std::uint32_t port, Arrival&& arrival) override;

  [[nodiscard]] const SwitchTiming& timing() const { return timing_; }
  [[nodiscard]] PortQueueCounts counts(std::uint32_t port) const { return ports_.at(port).counts; }
  [[nodiscard]] std::uint64_t damaged() const { return damaged_; }

 private:
  struct Egress {
    Line* line;
    PortQueueCounts counts;
  };

  void emit(const softswitch::rt::OutFrame& frame, Picos ready);

  softswitch::Packets& packets_;
  SwitchTiming timing_;
  std::map<std::uint32_t, Egress> ports_;
  std::vector<softswitch::rt::OutFrame> out_;
  std::uint64_t damaged_ = 0;
};

}  // namespace catchment::cosim
