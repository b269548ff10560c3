// A device on a clock: one AXI-Stream MAC port of 512 bits each way and a register bus, behind a
// table of functions, so that the program that runs the clock (sim/cosim) needs nothing of the
// device's Verilator build. A library offers its table by catchment_device().
#pragma once

#include <cstdint>

namespace catchment::rtl {

struct Beat {
  std::uint8_t data[64];
  std::uint64_t keep;  // bit i: byte i counts
  std::uint32_t last;
  std::uint32_t user;  // with last: the frame is damaged
};

struct Device {
  static constexpr std::uint32_t kAbi = 1;
  static constexpr std::uint32_t kNoAnswer = 0xFF;

  std::uint32_t abi;
  // One clock. `rx` is the beat that the MAC offers, nullptr: none; it must be taken. `tx_ready`:
  // the MAC takes a beat. Returns 1 when one moved, which is then in `tx`.
  std::uint32_t (*clock)(void* device, const Beat* rx, std::uint32_t tx_ready, Beat* tx);
  // Begins an access, which the next clocks carry out; one at a time.
  void (*begin_write)(void* device, std::uint32_t address, std::uint32_t value);
  void (*begin_read)(void* device, std::uint32_t address);
  // The response (AXI's RRESP, BRESP) and a read's value, or kNoAnswer.
  std::uint32_t (*answer)(void* device, std::uint32_t* value);
  // Gives up the access under way.
  void (*give_up)(void* device);
};

}  // namespace catchment::rtl

extern "C" {
using CatchmentDeviceFunction = const catchment::rtl::Device* (*)();
}
