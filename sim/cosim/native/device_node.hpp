// A clocked device (rtl/harness/device.hpp) behind a MAC at line rate.
//
// To the device the MAC gives a beat at the first clock after its bytes have arrived. From it the
// MAC takes beats while less than its FIFO waits for the line, and begins a frame with the first
// beat: the device gives one without gaps.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "protocol_line.hpp"
#include "register_port.hpp"
#include "rtl/harness/device.hpp"
#include "watch.hpp"

namespace catchment::cosim {

struct MacCounts {
  std::uint64_t tx_beats = 0;
  std::uint64_t tx_full_clocks = 0;  // the FIFO takes nothing
  std::uint64_t rx_beats = 0;
  std::uint64_t cut_frames = 0;  // the device ended them with an error
};

class DeviceNode {
 public:
  DeviceNode(const rtl::Device& table, void* device, std::size_t fifo_bytes)
      : registers({table.begin_write, table.begin_read, table.answer, table.give_up}, device),
        table_(table),
        device_(device),
        fifo_bytes_(fifo_bytes) {}

  RegisterPort registers;

  void attach(ProtocolLine& line) { line_ = &line; }
  void arrive(Arrival&& arrival);
  // Clocks from `now` on.
  void run(Picos now, std::uint64_t clocks);

  // When a byte of its host's memory is not 0 any more.
  std::shared_ptr<Watch> watch(const volatile std::uint8_t* byte);
  [[nodiscard]] std::size_t waiting() const { return watches_.size(); }
  [[nodiscard]] const MacCounts& counts() const { return counts_; }

 private:
  const rtl::Beat* offer(Picos now);
  void take(const rtl::Beat& beat, Picos now);
  void look(Picos now);

  const rtl::Device& table_;
  void* device_;
  std::size_t fifo_bytes_;
  ProtocolLine* line_ = nullptr;
  MacCounts counts_;

  std::deque<Arrival> arrivals_;
  std::size_t place_ = 0;  // bytes of the first one that the device has
  rtl::Beat rx_{};
  Bytes part_;
  Picos part_first_ = 0;

  std::vector<std::pair<const volatile std::uint8_t*, std::shared_ptr<Watch>>> watches_;
};

}  // namespace catchment::cosim
